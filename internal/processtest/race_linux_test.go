//go:build race

package processtest

// raceDetector: it keeps memory about all memory that there ever was.
const raceDetector = true
