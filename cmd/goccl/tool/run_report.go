package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goccl/goccl/internal/launcher"
)

// runReport is the document of `goccl run --report`; docs/reference/processes.md describes it.
type runReport struct {
	Version int          `json:"version"` // 1
	Job     string       `json:"job,omitempty"`
	Program string       `json:"program"`
	Args    []string     `json:"args"` // starting with the program's name
	Started *time.Time   `json:"started,omitempty"`
	Seconds float64      `json:"seconds"`
	Verdict string       `json:"verdict"`
	Exit    int          `json:"exit"` // of goccl run
	Blamed  []int        `json:"blamed,omitempty"`
	Error   string       `json:"error,omitempty"`
	Ranks   []rankReport `json:"ranks"`
	Earlier []*runReport `json:"earlier,omitempty"` // attempts that a restart has followed, in their order
}

// rankReport is a rank in a runReport.
type rankReport struct {
	Rank      int             `json:"rank"`
	Node      *int            `json:"node,omitempty"` // if there are several, and its host
	Host      string          `json:"host,omitempty"`
	PID       int             `json:"pid"`
	Exit      *int            `json:"exit,omitempty"` // unless a signal ended it, or its node was lost
	Signal    string          `json:"signal,omitempty"`
	Asked     string          `json:"asked,omitempty"` // the signal that goccl run had sent before
	Seconds   float64         `json:"seconds"`
	Transport string          `json:"transport,omitempty"`
	Cause     string          `json:"cause,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
}

// Verdicts of a report.
const (
	verdictOK         = "ok"
	verdictFailed     = "failed"
	verdictSignal     = "signal"
	verdictNotStarted = "not started"
)

// reportFile is the file of a report, or nil.
type reportFile struct{ *os.File }

// createReport empties the file before the job starts: a report that cannot be written is no
// surprise after it, and an old one is not taken for that of a job that was killed.
func createReport(path string) (*reportFile, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--report: %w", err)
	}
	return &reportFile{f}, nil
}

// write writes the report of a job that has ended with err.
func (f *reportFile) write(job *launcher.Spec, outcome *launcher.Outcome, earlier []launcher.Attempt, err error) error {
	if f == nil {
		return nil
	}
	r := newRunReport(job, outcome, err)
	for _, a := range earlier {
		r.Earlier = append(r.Earlier, newRunReport(job, a.Outcome, a.Err))
	}

	text, failed := json.MarshalIndent(r, "", "  ")
	if failed == nil {
		_, failed = f.Write(append(text, '\n'))
	}
	if failed = errors.Join(failed, f.Close()); failed != nil {
		return fmt.Errorf("--report: %w", failed)
	}
	return nil
}

func newRunReport(job *launcher.Spec, outcome *launcher.Outcome, err error) *runReport {
	r := &runReport{Version: 1, Program: job.Program, Args: job.Args, Verdict: verdictOK, Ranks: []rankReport{}}
	ended, _ := errors.AsType[*launcher.EndedError](err)
	if err != nil {
		r.Verdict, r.Exit, r.Error = verdictFailed, statusOf(err), err.Error()
	}

	if ended != nil {
		if r.Blamed = ended.Blamed; ended.First < 0 {
			r.Verdict = verdictSignal
		}
	}
	if outcome == nil {
		r.Verdict = verdictNotStarted
		return r
	}

	r.Job, r.Started, r.Seconds = outcome.Job, &outcome.Started, outcome.Took.Seconds()
	for i, rank := range outcome.Ranks {
		d := rankReport{Rank: i, PID: rank.PID, Seconds: rank.Wall.Seconds(), Transport: rank.Transport, Value: rank.Value, Asked: launcher.SignalName(rank.Asked)}
		if d.Host = rank.Host; d.Host != "" {
			d.Node = &rank.Node
		}

		if d.Signal = launcher.SignalName(rank.Signal); d.Signal == "" && rank.Lost == "" {
			d.Exit = &rank.Exit
		}
		if ended != nil {
			d.Cause = ended.CauseOf(i)
		}
		r.Ranks = append(r.Ranks, d)
	}
	return r
}
