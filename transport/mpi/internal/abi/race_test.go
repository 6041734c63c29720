//go:build race

package abi

const raceDetector = true
