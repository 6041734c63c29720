//go:build race

package ccltest

// moreMutants break memory; the race detector would see them first.
var moreMutants []mutant
