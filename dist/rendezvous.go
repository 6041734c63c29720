package dist

import (
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// rendezvous is one collective InitProcessGroup: the n-th call of every rank of a job.
// Each rank meets the others, connects, and submits its verdict. A rendezvous succeeds
// on all ranks or on none.
type rendezvous struct {
	job     *job
	number  int           // within the process, from 1
	allHere chan struct{} // closed when all ranks are here
	decided chan struct{} // closed when the outcome is decided

	// Guarded by job.mu:
	entered   int    // ranks that have entered
	here      []bool // ranks that have called joinRanks
	arrived   int    // number of these
	endpoints []transport.Endpoint
	verdicts  int        // ranks that have submitted theirs
	lost      *RankError // the first rank that could not connect because of another

	// Guarded by job.mu until decided is closed, and constant from then on:
	failed bool
	cause  error // why it failed
	by     int   // the rank that made it fail, or noRank
}

// noRank means that a rendezvous failed without an error of any rank's own.
const noRank = -1

// errElsewhere is the verdict of a rank whose rendezvous another rank has failed.
var errElsewhere = errors.New("InitProcessGroup failed on another rank")

// rendezvousCount numbers the process's rendezvous: the number is part of the name by
// which processes meet.
var rendezvousCount interleave.Int64

func newRendezvous(j *job) *rendezvous {
	return &rendezvous{
		job:     j,
		number:  int(rendezvousCount.Add(1)),
		allHere: make(chan struct{}),
		decided: make(chan struct{}),
		here:    make([]bool, len(j.ranks)),
	}
}

// isOver reports whether the outcome is decided.
func (m *rendezvous) isOver() bool {
	interleave.Step()
	select {
	case <-m.decided:
		return true
	default:
		return false
	}
}

// joinRanks waits for all ranks and returns r's endpoint, which p makes. The endpoints are
// created only then because a transport chooses between polling and parking by the number of
// ranks that the process hosts, and by then no rank is still in an earlier group.
func (m *rendezvous) joinRanks(r *rank, p transport.Provider, timeout time.Duration) (transport.Endpoint, error) {
	j := m.job
	if j.launched != nil {
		return m.joinProcesses(p, timeout)
	}
	j.mu.Lock()
	m.here[r.number] = true
	m.arrived++
	last := m.arrived == len(j.ranks) && !m.failed
	j.mu.Unlock()
	if last {
		return m.joinAll(r, p, timeout)
	}

	var expired <-chan time.Time
	if timeout > 0 {
		timer := interleave.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	var late *TimeoutError
	if m.await(expired) {
		late = &TimeoutError{After: timeout}
		if m.allCame() { // the last of them makes the endpoints, with a deadline of its own
			m.await(nil)
			late = nil
		}
	}

	// The ranks may have met at the moment at which the wait was ended.
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case m.endpoints != nil:
		return m.endpoints[r.number], nil
	case m.failed:
		return nil, errElsewhere
	// This rank is the first to find that the ranks do not meet.
	case late != nil:
		for number, here := range m.here {
			if !here {
				late.Missing = append(late.Missing, number)
			}
		}
		err := fmt.Errorf("waiting for all %d ranks to call dist.InitProcessGroup: %w", len(j.ranks), late)
		m.fail(r.number, err)
		j.waitedFor(late.Missing, timeout)
		return nil, err
	// The context of the job has ended.
	default:
		err := transport.ContextError(j.ctx)
		m.fail(r.number, err)
		return nil, err
	}
}

// await waits until the ranks have met, the outcome is decided, or the job's context ends. It
// reports whether expired came before that.
func (m *rendezvous) await(expired <-chan time.Time) bool {
	return interleave.FirstOfFour(expired, m.allHere, m.decided, m.job.ctx.Done()) == 0
}

// allCame reports whether all ranks have called.
func (m *rendezvous) allCame() bool {
	m.job.mu.Lock()
	defer m.job.mu.Unlock()
	return m.arrived == len(m.job.ranks)
}

// joinAll makes the endpoints of all ranks, which have met: r is the last of them.
func (m *rendezvous) joinAll(r *rank, p transport.Provider, timeout time.Duration) (transport.Endpoint, error) {
	endpoints, err := m.join(p, timeout)
	m.job.mu.Lock()
	defer m.job.mu.Unlock()
	switch {
	case m.failed: // another rank has given up meanwhile
		return nil, errors.Join(errElsewhere, discard(endpoints))
	case err != nil:
		m.fail(r.number, err)
		return nil, err
	}
	m.endpoints = endpoints
	interleave.Step()
	close(m.allHere)
	return endpoints[r.number], nil
}

// conclude submits the verdict of rank r and waits for the outcome: nil on all ranks or
// on none.
func (m *rendezvous) conclude(r *rank, err error) error {
	cause, _ := causeOf(r.number, err)
	isOwn := err != nil && !errors.Is(err, errElsewhere) && !cause.IsConsequence()
	m.job.mu.Lock()
	m.verdicts++
	if err != nil && m.lost == nil {
		m.lost = &RankError{r.number, err}
	}
	switch {
	case m.failed:
	case isOwn:
		m.fail(r.number, err)
	case m.verdicts < len(m.job.ranks):
		// If this rank failed, the rank that caused it is about to submit why.
	case m.lost != nil:
		m.fail(m.lost.Rank, m.lost.Err)
	default:
		interleave.Step()
		close(m.decided)
	}
	m.job.mu.Unlock()

	interleave.Receive(m.decided)
	switch {
	case !m.failed:
		return nil
	case isOwn:
		return err
	case m.by == noRank || m.by == r.number:
		return m.cause
	default:
		return &AbortedError{By: m.by, Cause: m.cause}
	}
}

// fail decides the outcome unless it is decided. The caller holds job.mu.
func (m *rendezvous) fail(by int, cause error) {
	if !m.isOver() {
		m.failed, m.by, m.cause = true, by, cause
		interleave.Step()
		close(m.decided)
	}
}
