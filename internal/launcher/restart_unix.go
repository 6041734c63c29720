//go:build unix

package launcher

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	faults "github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/launchenv"
)

// attempt is one start of a job.
type attempt struct {
	limits   *Restarts
	base     string // of the name of the job
	name     string // unique, so that ranks of two attempts never meet
	restart  int    // number of restarts before it
	failures int    // that are counted against limits.Max
}

func newAttempt(limits *Restarts) *attempt {
	base := fmt.Sprintf("goccl-%016x", rand.Uint64())
	return &attempt{limits: limits, base: base, name: base}
}

// renew makes it the attempt after one that has failed after so long.
func (a *attempt) renew(took time.Duration) {
	a.count(took)
	a.restart++
	a.name = fmt.Sprintf("%s.%d", a.base, a.restart)
}

// Pauses before restarts: twice as long after each failure that is counted.
const (
	firstRestartPause   = 500 * time.Millisecond
	longestRestartPause = 30 * time.Second
)

// pause returns how long to wait before a restart, at random, so that jobs that failed together do
// not start together.
func (a *attempt) pause() time.Duration {
	most := min(firstRestartPause<<min(a.failures-1, 10), longestRestartPause)
	return most/2 + rand.N(most/2)
}

// count counts a failure after so long.
func (a *attempt) count(took time.Duration) {
	if a.limits.Window > 0 && took >= a.limits.Window {
		a.failures = 0
	}
	a.failures++
}

// isFollowed reports whether a restart follows the attempt, which has ended with err after so long.
func (a attempt) isFollowed(err error, took time.Duration) bool {
	switch e := err.(type) { //nolint:errorlint // an error that is joined to it, of lost output, would come again
	case *NodeError:
		a.count(took)
		return e.Restart || e.isLost && a.failures <= a.limits.Max
	case *EndedError:
		a.count(took)
		return a.failures <= a.limits.Max && e.canVanish()
	}
	return false
}

// canVanish reports whether a restart may help: the failure is none of those that only repeat, and
// nobody wants the job to end.
func (e *EndedError) canVanish() bool {
	if e.First < 0 || e.isInterrupted {
		return false
	}
	if r := e.Ranks[e.Reporter].Report; r != nil && r.Kind == launchenv.FailedInit && (r.IsConfiguration || r.Cause.IsDifference() || r.Cause == faults.Rejected) {
		return false
	}
	switch e.ExitCode() {
	case statusUsage:
		return e.Crash != nil // else the program refuses its arguments
	case statusNotExecutable, statusNotFound: // of a shell
		return false
	}
	return true
}

// Run is Run of the job, and again after failures. It returns the outcome of the last attempt, and
// those that a restart followed, or should have followed.
//
// A failure that would only repeat is not restarted: status 2 without a crash, 126 and 127, a
// configuration that does not load, or that ranks do not share, a job that cannot start. Nor is a
// job that a signal ends, or the end of the context, also between two attempts.
func (r *Restarts) Run(ctx context.Context, j *Spec) (*Outcome, []Attempt, error) {
	begun, a := time.Now(), newAttempt(r)
	var earlier []Attempt
	for {
		outcome, err := j.start(ctx, a)
		if outcome == nil && earlier != nil {
			return earlier[len(earlier)-1].Outcome, earlier, fmt.Errorf("restart %d: %w", a.restart, err)
		}
		if outcome == nil || ctx.Err() != nil || !a.isFollowed(err, outcome.Took) {
			return outcome, earlier, err
		}

		a.renew(outcome.Took)
		pause, failed := a.pause(), Attempt{outcome, err}
		if r.Notice != nil {
			r.Notice(failed, a.restart, pause)
		}
		earlier = append(earlier, failed)
		if ended := j.awaitRestart(ctx, pause); ended != nil {
			ended.After = time.Since(begun)
			j.tellNodes(ctx, a, ended, 2*pause+silence)
			if j.Nodes.Rank == 0 { // the others do not know those of all
				ended.Ranks = outcome.Ranks
			}
			return outcome, earlier, fmt.Errorf("before restart %d: %w", a.restart, ended)
		}
	}
}

// tellNodes tells the launchers of other nodes why no restart follows, once they have come to it.
func (j *Spec) tellNodes(ctx context.Context, a *attempt, why error, limit time.Duration) {
	if j.Nodes.Count > 1 {
		told := *j
		told.Nodes.Invalid, told.Nodes.Timeout = why, limit
		_, _ = told.start(context.WithoutCancel(ctx), a) // it starts nothing
	}
}

// awaitRestart waits, and returns an error if a signal or the end of ctx ends the job meanwhile.
func (j *Spec) awaitRestart(ctx context.Context, pause time.Duration) *EndedError {
	next := time.After(pause)

	for {
		select {
		case <-next:
			return nil
		case <-ctx.Done():
			return &EndedError{First: -1, Seen: -1, Canceled: endOf(ctx)}
		case s := <-j.Signals:
			if !slices.Contains(userSignals, s) {
				return &EndedError{First: -1, Seen: -1, Signal: s.(syscall.Signal)}
			}
		}
	}
}
