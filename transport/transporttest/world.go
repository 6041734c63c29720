package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
)

// harness opens the groups of a check.
type harness struct {
	open     func(ranks int) []transport.Endpoint
	patience time.Duration
}

// world is one group of ranks.
type world struct {
	ranks    []*rank
	patience time.Duration
	stop     chan struct{} // closed when the script of a rank has failed
	stopping sync.Once
}

// rank is one rank of a world: its endpoint and the state of its script.
type rank struct {
	transport.Endpoint
	w   *world
	me  int
	n   int
	seq uint64     // the last call that it entered or refused
	rnd *rand.Rand // for delays: different on each rank
	mem buffers
	// What the rank brings to its calls and others need not bring.
	ctx     context.Context
	badHash uint64 // added to its hashes
	noSpin  bool
}

// errHung reports that a group made no progress.
var errHung = errors.New("no progress")

// errStopped ends the scripts of a world in which another rank has failed.
var errStopped = errors.New("stopped because another rank failed")

// scriptError is the value with which must ends a script.
type scriptError struct{ err error }

// must ends the script, or the check, with err unless err is nil.
func must(err error) {
	if err != nil {
		panic(scriptError{err})
	}
}

// mustIn is must; the error begins with what was done.
func mustIn(err error, what string, args ...any) {
	if err != nil {
		must(fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err))
	}
}

// fail ends the script, or the check.
func fail(format string, args ...any) { must(fmt.Errorf(format, args...)) }

// protected runs f and returns the error that must ended it with. It turns another
// panic into an error.
func protected(f func()) (err error) {
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

// each opens a group of n ranks, runs script once per rank, side by side, and closes
// the group. seed determines the delays; errors begin with what, unless it is empty.
func (h *harness) each(n int, seed uint64, what string, script func(r *rank)) {
	h.world(n, seed, what, func(w *world) { w.each(script) })
}

// world is each for a check that runs several scripts in one group.
func (h *harness) world(n int, seed uint64, what string, play func(w *world)) {
	eps := h.open(n)
	if len(eps) != n {
		fail("open returned %d endpoints instead of %d", len(eps), n)
	}
	w := newWorld(n, h.patience)
	for i, ep := range eps {
		w.ranks[i] = &rank{
			Endpoint: ep, w: w, me: i, n: n,
			rnd: rand.New(rand.NewPCG(seed, uint64(i))),
			ctx: context.Background(),
		}
	}
	err := protected(func() { play(w) })
	closed := protected(func() { w.each(func(r *rank) { mustIn(r.Close(), "Close") }) })
	if err == nil {
		err = closed
	}
	if what == "" {
		must(err) // without Free: some ranks may hang
	}
	mustIn(err, "%s", what)
	w.free()
}

func newWorld(n int, patience time.Duration) *world {
	return &world{ranks: make([]*rank, n), patience: patience, stop: make(chan struct{})}
}

// free frees closed endpoints and closes them once more.
func (w *world) free() {
	for _, r := range w.ranks {
		mustIn(errors.Join(r.Free(), r.Close()), "Free, and Close once more")
	}
}

// each runs script once per rank, side by side, and fails with the first error. A
// rank whose script fails makes the group fail, so that the others end as well.
func (w *world) each(script func(r *rank)) {
	outcomes := make(chan error, len(w.ranks))
	for _, r := range w.ranks {
		go func() {
			err := protected(func() { script(r) })
			if err != nil {
				err = fmt.Errorf("rank %d of %d: %w", r.me, len(w.ranks), err)
			}
			outcomes <- err
		}()
	}
	watchdog := time.NewTimer(w.patience)
	defer watchdog.Stop()
	var result error
	hung := false
	for pending := len(w.ranks); pending > 0; {
		select {
		case err := <-outcomes:
			pending--
			if err == nil {
				continue
			}
			if result == nil || consequence(result) && !consequence(err) {
				result = err
			}
			w.abandon()
		case <-watchdog.C:
			if hung {
				must(result) // not even the failure woke the ranks
			}
			hung = true
			if result == nil || consequence(result) {
				result = fmt.Errorf("%w for %v\n%s", errHung, w.patience, stacks())
			}
			w.abandon()
			watchdog.Reset(w.patience)
		}
	}
	must(result)
}

// consequence reports whether err may merely follow from another rank's error.
func consequence(err error) bool {
	return errors.Is(err, errStopped) || errors.Is(err, transport.ErrFailed)
}

// abandon wakes all ranks, in its own goroutine because the endpoints may be broken.
func (w *world) abandon() {
	w.stopping.Do(func() {
		close(w.stop)
		go func() {
			for _, r := range w.ranks {
				r.Fail(&transport.Failure{Kind: transport.FailureAborted, By: r.me, Text: "the check has failed"})
			}
		}()
	})
}

func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}

// checkStop ends the script if the script of another rank has failed.
func (r *rank) checkStop() {
	select {
	case <-r.w.stop:
		must(errStopped)
	default:
	}
}

// await waits until g is open, and ends the script if another rank's has failed.
func (r *rank) await(g *gate) {
	select {
	case <-g.opened:
	case <-r.w.stop:
		must(errStopped)
	}
}

// gate opens when it has been passed as many times as newGate was told.
type gate struct {
	left   atomic.Int64
	opened chan struct{}
}

func newGate(times int) *gate {
	g := &gate{opened: make(chan struct{})}
	g.left.Store(int64(times))
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
	if g.left.Add(-1) == 0 {
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

// meet passes g and awaits the other ranks that pass it.
func (r *rank) meet(g *gate) {
	g.pass()
	r.await(g)
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
	for range times {
		runtime.Gosched()
	}
}
