// Package arch holds the test that proves who may import whom in this module. It
// contains no code.
package arch
