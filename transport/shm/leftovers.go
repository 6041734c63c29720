package shm

import "time"

// Leftover is a file that a dead job has left behind. It is a segment whose job died before all
// of its ranks had joined, or the link of a rank that was killed while it told the other ranks
// that it cannot join.
type Leftover struct {
	Path  string
	Job   string    // the job's name
	Ranks int       // number of ranks of the job
	Bytes int       // size of the segment; 0 for a link
	PID   int       // process id of rank 0, or of the rank that left the link; it is dead
	Made  time.Time // when the file was made
}
