//go:build race

package ccltest

const raceEnabled = true
