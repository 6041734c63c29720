package shm

import "time"

// RunningJob is a job of processes of this user that is running, or the part of it on this node.
//
// The state of a process is running, stopped, traced (held by a debugger), zombie, gone (it has
// ended), or elsewhere: it lives in another pid namespace, where it has another id.
type RunningJob struct {
	Name   string    `json:"job"`
	Ranks  int       `json:"ranks"`  // number of ranks of the job
	PIDs   []int     `json:"pids"`   // process ids by rank; 0 if the process has ended, or has another id here
	States []string  `json:"states"` // of the processes, by rank
	Made   time.Time `json:"made"`   // when rank 0 made the job's memory

	// Numbers are the ranks in the whole job; -1: not known. Nil: they are 0, 1 and so on.
	Numbers []int `json:"numbers,omitempty"`
}

// Number returns the rank in the whole job of one of these ranks, or -1.
func (j *RunningJob) Number(rank int) int {
	if j.Numbers == nil {
		return rank
	}
	return j.Numbers[rank]
}
