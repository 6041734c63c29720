//go:build race

package processes

// raceDetector: it keeps memory about all memory that there ever was.
const raceDetector = true
