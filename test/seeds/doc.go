// Package seeds runs jobs under seeds: package interleave chooses the order of every step.
//
// Its tests need the build tag interleave; make seeds runs them.
package seeds
