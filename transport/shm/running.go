package shm

import "time"

// RunningJob is a job of processes of this user that is running.
type RunningJob struct {
	Name  string    `json:"job"`
	Ranks int       `json:"ranks"` // number of ranks of the job
	PIDs  []int     `json:"pids"`  // process ids by rank; 0 if the process has ended, or has another id here
	Made  time.Time `json:"made"`  // when rank 0 made the job's memory
}
