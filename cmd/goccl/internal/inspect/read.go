package inspect

import (
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport/shm"
)

// Load reads the documents in a directory.
func Load(dir string) (*Records, error) {
	documents, unread, err := flight.Load(dir)
	if err != nil {
		return nil, err
	}
	j := Merge(documents)
	j.Unread = unread
	return j, nil
}

// Running reads the memory of a running job of this user.
func Running(job string) (*Records, error) {
	memory, err := shm.OpenFlight(job)
	if err != nil {
		return nil, withRunning(err)
	}
	defer memory.Close() //nolint:errcheck // it was only read
	ranks, err := memory.Ranks()
	if err != nil {
		return nil, err
	}
	if len(ranks) == 0 {
		return nil, fmt.Errorf("no rank of job %q has recorded anything yet", job)
	}
	j := Merge([]*flight.Document{{Job: memory.Job(), Size: memory.Size(), Writer: "its memory", Written: time.Now(), Ranks: ranks}})
	running := memory.Running()
	j.Running = &running
	return j, nil
}

// withRunning returns err with the names of the jobs that are running.
func withRunning(err error) error {
	running, _ := shm.Jobs() // err is the error to report
	if len(running) == 0 {
		return err
	}
	names := make([]string, len(running))
	for i, r := range running {
		names[i] = r.Name
	}
	return fmt.Errorf("%w; running are %q", err, names)
}
