//go:build !race

package ccltest

const raceEnabled = false
