//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"runtime"
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

// rest implements groupsync.Remote. The sleepers of this process's rank poll the wire themselves;
// Wake of another rank sends it this rank's words.
type rest struct {
	group  *group
	tokens [2]interleave.Bool // of this rank in its calls, and of its P2P
	noSpin interleave.Bool    // in the current call
}

// Times of a rank that sleeps.
const (
	pollTime       = 500 * time.Microsecond // it polls the wire without pause
	sharedPollTime = 10 * time.Microsecond  // the same, if ranks outnumber the cores of their host
	announceTime   = 2 * time.Millisecond   // then it sends its words, by which others see for whom it waits
	sleepTime      = 50 * time.Millisecond  // then it returns, so that its caller looks for dead ranks
	napTime        = 50 * time.Microsecond  // between two looks, once it does not poll without pause
)

// Wake implements groupsync.Rest.
func (r *rest) Wake(sleeper int) {
	n := len(r.group.processOf)
	if sleeper%n == r.group.rank {
		r.tokens[sleeper/n].Store(true)
		return
	}
	r.group.sendWords()
}

// wakeRank wakes this process's rank, because something has arrived.
func (r *rest) wakeRank() {
	for i := range r.tokens {
		if !r.tokens[i].Load() {
			r.tokens[i].Store(true)
		}
	}
}

// Sleep implements groupsync.Rest.
func (r *rest) Sleep(sleeper int, ctx context.Context) (woken bool) {
	token := &r.tokens[sleeper/len(r.group.processOf)]
	begin := time.Now()
	spinTime := time.Duration(r.group.process.pollTime.Load())
	if sleeper == r.group.rank && r.noSpin.Load() {
		spinTime = 0
	}

	announced := false
	for {
		if token.Load() && token.Swap(false) {
			return true
		}
		if ctx != nil && ctx.Err() != nil {
			return false
		}
		if r.group.process.poll() {
			continue
		}

		switch passed := time.Since(begin); {
		case passed >= sleepTime:
			return false
		case passed >= announceTime && !announced:
			announced = true
			r.group.sendWords()
		case passed >= spinTime:
			time.Sleep(napTime)
		default:
			runtime.Gosched()
		}
	}
}

// Yield implements groupsync.Processes: it polls the wire instead.
func (r *rest) Yield() (soon bool) {
	r.group.process.poll()
	return true
}

// LostCore implements groupsync.Processes.
func (r *rest) LostCore(int) {}

// IsAsleep implements groupsync.Rest, by what the rank has sent.
func (r *rest) IsAsleep(sleeper int) bool {
	n := len(r.group.processOf)
	if sleeper%n == r.group.rank {
		return r.group.sync.IsWaiting(sleeper) && !r.tokens[sleeper/n].Load()
	}
	return r.group.sync.IsWaiting(sleeper)
}

// Dead implements groupsync.Processes.
func (r *rest) Dead(rank int) (pid int, dead bool) {
	return r.group.process.deathOf(r.group.processOf[rank])
}

// Blocker implements groupsync.Remote.
func (r *rest) Blocker(peer int, seq uint64) int { return r.group.lines.via(peer, seq) }
