package measure

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

// Team is the ranks of a job that a launcher started, on rank 0. Rank 0 measures with them by
// Job.Measure, while they run Serve.
type Team struct {
	follows bool // this is not rank 0
	broken  bool
}

// request tells the other ranks what rank 0 measures next.
type request struct {
	Job  Job
	Case Case
}

// tell sends a request from rank 0 to all ranks; nil is the last one. It uses a group of its own
// with the built-in configuration, because that of a request may not have the algorithm. The
// others wait long, because rank 0 may wait for whoever reads its output.
func tell(r *request) (*request, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if err := dist.InitProcessGroup("ccl", dist.WithConfig(config.Default()), dist.WithTransport("shm"), dist.WithTimeout(10*time.Minute)); err != nil {
		return nil, err
	}
	if err := dist.BroadcastObject(&text, 0); err != nil {
		return nil, err
	}
	if err := dist.DestroyProcessGroup(); err != nil {
		return nil, err
	}
	r = nil
	return r, json.Unmarshal(text, &r)
}

// Serve takes part in all measurements of rank 0, until its Team is dismissed. load sets the Config of
// a Job.
func Serve(ctx context.Context, load func(*Job) error) error {
	for {
		r, err := tell(nil) // all but rank 0 receive
		if err != nil || r == nil {
			return err
		}
		if err := load(&r.Job); err != nil {
			return err
		}
		r.Job.Team = &Team{follows: true}
		if _, err := r.Job.Measure(ctx, r.Case); err != nil {
			return err
		}
	}
}

// Broken reports whether a measurement has failed on some ranks. Then the other ranks have ended
// or end, with their errors.
func (t *Team) Broken() bool { return t.broken }

// Dismiss ends Serve on the other ranks, unless the team is broken.
func (t *Team) Dismiss() error {
	if t.broken {
		return nil
	}
	t.broken = true
	_, err := tell(nil)
	return err
}
