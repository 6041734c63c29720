package shm

import "time"

// Leftover is a segment whose job has died before all of its ranks had joined, or what a rank
// has left that was killed while it told the others that it cannot join: that has no bytes.
type Leftover struct {
	Path  string
	Job   string // the job's name
	Ranks int    // of the job
	Bytes int    // that the segment occupies
	PID   int    // of rank 0, or of that rank, which is dead
	Made  time.Time
}
