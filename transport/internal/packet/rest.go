package packet

import (
	"context"
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

// rest implements groupsync.Remote. The sleepers of this process's rank poll the wire themselves,
// and sleep if it can wait; Wake of another rank sends it this rank's words.
type rest struct {
	group  *group
	tokens [2]token        // of this rank in its calls, and of its P2P
	noSpin interleave.Bool // in the current call
}

// token ends the sleep of a rank.
type token struct {
	isSet interleave.Bool
	waker interleave.Pointer[Process] // while the rank waits for packets
	bell  chan struct{}
	timer *interleave.Timer // the rank's; nil: not made yet
}

func (t *token) set() {
	if t.isSet.Load() {
		return
	}
	t.isSet.Store(true)
	if p := t.waker.Load(); p != nil {
		p.awaiter.Wake()
	}
	interleave.Step()
	select {
	case t.bell <- struct{}{}:
	default:
	}
}

func (t *token) take() bool { return t.isSet.Load() && t.isSet.Swap(false) }

func newRest(g *group) rest {
	return rest{group: g, tokens: [2]token{{bell: make(chan struct{}, 1)}, {bell: make(chan struct{}, 1)}}}
}

// Times of a rank that sleeps.
const (
	pollTime      = 500 * time.Microsecond // it polls the wire without pause
	shortPollTime = 10 * time.Microsecond  // the same, if the wire can wait, or ranks outnumber the cores of their host
	announceTime  = 2 * time.Millisecond   // then it sends its words, by which others see for whom it waits
	sleepTime     = 50 * time.Millisecond  // then it returns, so that its caller looks for dead ranks
	napTime       = 50 * time.Microsecond  // between two looks, once it does not poll without pause
	longestNap    = time.Millisecond       // between two looks of a rank that joins or decides, after a while
)

// Wake implements groupsync.Rest.
func (r *rest) Wake(sleeper int) {
	n := len(r.group.processOf)
	if sleeper%n == r.group.rank {
		r.tokens[sleeper/n].set()
		return
	}
	r.group.sendWords()
}

// wakeRank wakes this process's rank, because something has arrived.
func (r *rest) wakeRank() {
	for i := range r.tokens {
		r.tokens[i].set()
	}
}

// Sleep implements groupsync.Rest.
func (r *rest) Sleep(sleeper int, ctx context.Context) (woken bool) {
	t := &r.tokens[sleeper/len(r.group.processOf)]
	p := r.group.process
	begin := time.Now()
	mayPoll := (sleeper != r.group.rank || !r.noSpin.Load()) && p.isWorthPolling()
	var done <-chan struct{}
	if ctx != nil {
		done = ctx.Done()
	}

	next := announceTime
	hasPolled, hasSlept := false, false
	for {
		if t.take() {
			p.notePolling(hasPolled, hasSlept)
			return true
		}

		if ctx != nil && ctx.Err() != nil {
			return false
		}
		p.looks.Add(1)
		found, isFree := p.look()
		if found {
			continue
		}

		switch passed := time.Since(begin); {
		case passed >= sleepTime:
			return false
		case passed >= next:
			next = sleepTime
			r.group.sendWords()

		// Poll at first, then sleep.
		case mayPoll && p.polls(passed):
			hasPolled = true
			yield()
		case p.awaiter == nil:
			interleave.Sleep(napTime)
		default:
			hasSlept = true
			p.awaitToken(t, done, next-passed, isFree)
		}
	}
}

// Yield implements groupsync.Processes: it polls the wire instead, once where ranks sleep soon.
func (r *rest) Yield() (soon bool) {
	p := r.group.process
	p.poll()
	return p.awaiter == nil || p.polls(shortPollTime)
}

// LostCore implements groupsync.Processes.
func (r *rest) LostCore(int) {}

// IsAsleep implements groupsync.Rest, by what the rank has sent.
func (r *rest) IsAsleep(sleeper int) bool {
	n := len(r.group.processOf)
	if sleeper%n == r.group.rank {
		return r.group.sync.IsWaiting(sleeper) && !r.tokens[sleeper/n].isSet.Load()
	}
	return r.group.sync.IsWaiting(sleeper)
}

// Dead implements groupsync.Processes.
func (r *rest) Dead(rank int) (pid int, dead bool) {
	return r.group.process.deathOf(r.group.processOf[rank])
}

// Host implements groupsync.Remote.
func (r *rest) Host(rank int) string { return r.group.hostOf(rank) }

// Blocker implements groupsync.Remote.
func (r *rest) Blocker(peer int, seq uint64) int { return r.group.lines.via(peer, seq) }
