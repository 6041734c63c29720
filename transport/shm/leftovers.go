package shm

import "time"

// Leftover is a segment whose job has died before all of its ranks had joined.
type Leftover struct {
	Path  string
	Job   string // the job's name
	Ranks int    // of the job
	Bytes int    // that the segment occupies
	PID   int    // of rank 0, which is dead
	Made  time.Time
}
