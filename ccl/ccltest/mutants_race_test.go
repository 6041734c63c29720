//go:build race

package ccltest

// moreMutants are for runs without the race detector.
var moreMutants []mutant
