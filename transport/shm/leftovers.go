package shm

import "time"

// Leftover is a file that a dead job has left behind. It is a segment whose job died before all
// of its ranks had joined, or the link of a rank that was killed while it told the other ranks
// that it cannot join.
type Leftover struct {
	Path  string    `json:"path"`
	Job   string    `json:"job"`   // the job's name
	Ranks int       `json:"ranks"` // number of ranks of the job
	Bytes int       `json:"bytes"` // size of the segment; 0 for a link
	PID   int       `json:"pid"`   // process id of rank 0, or of the rank that left the link; it is dead
	Made  time.Time `json:"made"`  // when the file was made
}
