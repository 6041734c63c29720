package measure

import (
	"context"
	"encoding/json"
	"time"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

// LaunchedRanks is the ranks of a job that a launcher started, on rank 0, which measures with them
// while they run Serve.
type LaunchedRanks struct {
	hasEnded bool // or a measurement has failed on some ranks
}

// Measurement is what ranks measure, as JSON.
type Measurement struct {
	Setup *Setup
	Case  Case
}

// broadcast sends a measurement from rank 0 to all ranks; nil is the last one.
//
// It uses a group of its own with the built-in configuration, because that of a measurement may
// not have the algorithm. The others wait long, because rank 0 may wait for whoever reads its
// output.
func broadcast(m *Measurement) (*Measurement, error) {
	text, err := json.Marshal(m)
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
	m = nil
	return m, json.Unmarshal(text, &m)
}

// Serve takes part in all measurements of rank 0, until Dismiss. load sets the Config of a Setup.
func Serve(ctx context.Context, load func(*Setup) error) error {
	for {
		m, err := broadcast(nil) // all but rank 0 receive
		if err != nil || m == nil {
			return err
		}
		if err := load(m.Setup); err != nil {
			return err
		}
		if _, err := m.Setup.MeasureAsRank(ctx, m.Case); err != nil {
			return err
		}
	}
}

// Measure measures one case as Setup.Measure does, on all ranks of the launcher.
//
// If a rank dies or fails, the error names it. Then the other ranks have ended or end, with their
// errors.
func (l *LaunchedRanks) Measure(ctx context.Context, s *Setup, c Case) (Result, error) {
	var r Result
	_, err := broadcast(&Measurement{s, c})
	if err == nil {
		r, err = s.MeasureAsRank(ctx, c)
	}
	l.hasEnded = err != nil
	if err == nil && ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	return r, err
}

// Dismiss ends Serve on the other ranks, unless they have ended.
func (l *LaunchedRanks) Dismiss() error {
	if l.hasEnded {
		return nil
	}
	l.hasEnded = true
	_, err := broadcast(nil)
	return err
}
