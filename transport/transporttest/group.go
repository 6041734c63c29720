package transporttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// harness runs the scripts of a check, in groups of its size.
type harness struct {
	open     func(ranks int) []transport.Endpoint
	size     int
	patience time.Duration
	groups   uint64 // that were opened: the delays of each have another seed
}

// group is a group of ranks, each with an endpoint and a script.
type group struct {
	ranks    []*rank
	patience time.Duration
	stop     chan struct{} // closed when the script of a rank has failed
	stopping interleave.Once
}

// rank is one rank of a group: its endpoint and the state of its script.
type rank struct {
	transport.Endpoint
	group  *group
	number int
	size   int
	seq    uint64     // the last call that it entered or refused
	rnd    *rand.Rand // for delays: different on each rank
	mem    buffers
	// What the rank brings to its calls and others need not bring.
	ctx     context.Context
	badHash uint64 // added to its hashes
	noSpin  bool
}

// errHung reports that a group made no progress.
var errHung = errors.New("no progress")

// errStopped ends the scripts of a group in which another rank has failed.
var errStopped = errors.New("stopped because another rank failed")

// scriptError is the value with which failIf ends a script.
type scriptError struct{ err error }

// failIf ends the script, or the check, with err unless err is nil.
func failIf(err error) {
	if err != nil {
		panic(scriptError{err})
	}
}

// failIfIn is failIf; the error begins with what was done.
func failIfIn(err error, what string, args ...any) {
	if err != nil {
		failIf(fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err))
	}
}

// fail ends the script, or the check.
func fail(format string, args ...any) { failIf(fmt.Errorf(format, args...)) }

// catchFailure runs f and returns the error that failIf ended it with. It turns another
// panic into an error.
func catchFailure(f func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case scriptError:
			err = v.err
		default:
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	f()
	return nil
}

// run opens a group, runs script once per rank, side by side, and closes the group.
func (h *harness) run(script func(r *rank)) { h.runTitled("", script) }

// runTitled is run for one trial of several. Errors begin with the title, unless it is empty.
func (h *harness) runTitled(title string, script func(r *rank)) {
	err := catchFailure(func() {
		h.runGroup(func(g *group) { g.run(script) })
	})
	if title == "" {
		failIf(err)
	}
	failIfIn(err, "%s", title)
}

// runGroup opens a group, plays, and closes and frees the group. play may run several scripts.
//
// After an error it frees nothing, because ranks may hang.
func (h *harness) runGroup(play func(g *group)) {
	endpoints := h.open(h.size)
	if len(endpoints) != h.size {
		fail("open returned %d endpoints instead of %d", len(endpoints), h.size)
	}
	g := newGroup(h.size, h.patience)
	h.groups++
	for i, ep := range endpoints {
		g.ranks[i] = &rank{
			Endpoint: ep, group: g, number: i, size: h.size,
			rnd: rand.New(rand.NewPCG(h.groups, uint64(i))),
			ctx: context.Background(),
		}
	}

	err := catchFailure(func() { play(g) })
	failIf(cmp.Or(err, catchFailure(g.closeRanks)))
	g.freeAll()
}

func newGroup(n int, patience time.Duration) *group {
	return &group{ranks: make([]*rank, n), patience: patience, stop: make(chan struct{})}
}

// closeRanks lets all ranks close their endpoints.
func (g *group) closeRanks() { g.run(func(r *rank) { failIfIn(r.Close(), "Close") }) }

// freeAll frees closed endpoints and closes them once more.
func (g *group) freeAll() {
	for _, r := range g.ranks {
		failIfIn(errors.Join(r.Free(), r.Close()), "Free, and Close once more")
	}
}

// run runs script once per rank, side by side, and fails with the first error. A
// rank whose script fails makes the group fail, so that the others end as well.
func (g *group) run(script func(r *rank)) {
	outcomes, ended := make(chan error, len(g.ranks)), make(chan struct{}, len(g.ranks))
	for _, r := range g.ranks {
		interleave.Go(func() {
			err := catchFailure(func() { script(r) })
			if err != nil {
				err = fmt.Errorf("rank %d of %d: %w", r.number, len(g.ranks), err)
			}
			outcomes <- err
			ended <- struct{}{}
		})
	}

	watchdog := interleave.NewTimer(g.patience)
	defer watchdog.Stop()
	var result error

	hung := false
	for pending := len(g.ranks); pending > 0; {
		if interleave.First(ended, watchdog.C) == 1 {
			if hung {
				failIf(result) // not even the failure woke the ranks
			}
			hung = true
			if result == nil || isConsequence(result) {
				result = fmt.Errorf("%w for %v\n%s", errHung, g.patience, stacks())
			}
			g.failAll()
			watchdog.Reset(g.patience)
			continue
		}

		pending--
		err := <-outcomes
		if err == nil {
			continue
		}
		if result == nil || isConsequence(result) && !isConsequence(err) {
			result = err
		}
		g.failAll()
	}
	failIf(result)
}

// isConsequence reports whether err may merely follow from another rank's error.
func isConsequence(err error) bool {
	return errors.Is(err, errStopped) || errors.Is(err, transport.ErrFailed)
}

// failAll wakes all ranks, in its own goroutine because the endpoints may be broken.
func (g *group) failAll() {
	g.stopping.Do(func() {
		close(g.stop)
		interleave.Go(func() {
			for _, r := range g.ranks {
				r.Fail(&transport.Failure{Kind: transport.FailureAborted, By: r.number, Text: "the check has failed"})
			}
		})
	})
}

func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}

// checkStop ends the script if the script of another rank has failed.
func (r *rank) checkStop() {
	select {
	case <-r.group.stop:
		failIf(errStopped)
	default:
	}
}

// awaitGate waits until g is open, and ends the script if another rank's has failed.
func (r *rank) awaitGate(g *gate) {
	if interleave.First(g.opened, r.group.stop) == 1 {
		failIf(errStopped)
	}
}

// gate opens when it has been passed as many times as newGate was told.
type gate struct {
	remaining interleave.Int64
	opened    chan struct{}
}

func newGate(times int) *gate {
	g := &gate{opened: make(chan struct{})}
	g.remaining.Store(int64(times))
	return g
}

// newTurns returns n gates, of which the first is open: a rank awaits one and
// passes the next.
func newTurns(n int) []*gate {
	turns := make([]*gate, n)
	for i := range turns {
		turns[i] = newGate(1)
	}
	turns[0].pass()
	return turns
}

func (g *gate) pass() {
	if g.remaining.Add(-1) == 0 {
		close(g.opened)
	}
}

func (g *gate) isOpen() bool {
	select {
	case <-g.opened:
		return true
	default:
		return false
	}
}

// passAndAwait passes g and awaits the other ranks that pass it.
func (r *rank) passAndAwait(g *gate) {
	g.pass()
	r.awaitGate(g)
}

// yield lets other goroutines run, with a small probability.
func (r *rank) yield() {
	if r.rnd.IntN(4) == 0 {
		yield(r.rnd.IntN(50))
	}
}

// pause yields not at all, or long enough for the others to get to the middle of a wait
// and to sleep.
func (r *rank) pause() {
	yield(r.rnd.IntN(2) * r.rnd.IntN(400))
}

func yield(times int) {
	if interleave.IsSeeded() {
		interleave.Compute(time.Duration(times/8) * 100 * time.Nanosecond)
		interleave.PollEnds() // a loop may wait for what others do
		return
	}
	for range times {
		runtime.Gosched()
	}
}
