//go:build !race

package processes

const raceDetector = false
