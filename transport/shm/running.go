package shm

import "time"

// RunningJob is a job of processes of this user that is running.
//
// The state of a process is running, stopped, traced (held by a debugger), zombie, gone (it has
// ended), or elsewhere: it lives in another pid namespace, where it has another id.
type RunningJob struct {
	Name   string    `json:"job"`
	Ranks  int       `json:"ranks"`  // number of ranks of the job
	PIDs   []int     `json:"pids"`   // process ids by rank; 0 if the process has ended, or has another id here
	States []string  `json:"states"` // of the processes, by rank
	Made   time.Time `json:"made"`   // when rank 0 made the job's memory
}
