//go:build race

package ccltest

// racingMutants are for runs without the race detector.
var racingMutants []mutant
