//go:build !race

package processtest

const raceDetector = false
