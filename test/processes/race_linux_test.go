//go:build race

package processes

// raceDetector: it keeps memory for all memory that the process ever had.
const raceDetector = true
