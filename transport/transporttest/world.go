package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
)

// harness is what a check opens groups with.
type harness struct {
	open     func(ranks int) []transport.Endpoint
	logf     func(format string, args ...any)
	patience time.Duration
}

// world is one group of ranks.
type world struct {
	ranks    []*rank
	patience time.Duration
	stop     chan struct{} // closed when a rank has failed its script
	stopped  bool
}

// rank is one rank of a world: its endpoint, and what it needs for a script.
type rank struct {
	transport.Endpoint
	w   *world
	me  int
	n   int
	seq uint64     // of the last call it entered or refused
	rnd *rand.Rand // for delays, so different on each rank
	mem buffers
	// What it brings to its calls that others need not.
	ctx     context.Context
	badHash uint64 // what is wrong with its hashes
	patient bool
}

// errHung says that a group made no progress.
var errHung = errors.New("no progress")

// errStopped ends scripts of a world in which another rank has failed.
var errStopped = errors.New("stopped because another rank failed")

// world opens a group of n ranks, lets play use it, and closes it. seed makes
// the delays of its ranks.
func (h *harness) world(n int, seed uint64, play func(w *world) error) error {
	eps := h.open(n)
	if len(eps) != n {
		return fmt.Errorf("open returned %d endpoints instead of %d", len(eps), n)
	}
	w := &world{patience: h.patience, stop: make(chan struct{})}
	for i, ep := range eps {
		w.ranks = append(w.ranks, &rank{
			Endpoint: ep, w: w, me: i, n: n,
			rnd: rand.New(rand.NewPCG(seed, uint64(i))),
			ctx: context.Background(),
		})
	}
	err := play(w)
	closed := w.each(func(r *rank) error { return r.Close() })
	if err == nil && closed != nil {
		err = fmt.Errorf("Close: %w", closed)
	}
	if err != nil {
		return err // there may be ranks that hang
	}
	for _, r := range w.ranks {
		if err := errors.Join(r.Free(), r.Close()); err != nil {
			return fmt.Errorf("Free, and Close once more: %w", err)
		}
	}
	return nil
}

// each runs script once per rank, side by side, and returns the first error. A
// rank that fails its script makes the group fail, so that the others end too.
func (w *world) each(script func(r *rank) error) error {
	type outcome struct {
		rank int
		err  error
	}
	outcomes := make(chan outcome, len(w.ranks))
	for _, r := range w.ranks {
		go func() { outcomes <- outcome{r.me, protected(script, r)} }()
	}
	watchdog := time.NewTimer(w.patience)
	defer watchdog.Stop()
	var result error
	hung := false
	for pending := len(w.ranks); pending > 0; {
		select {
		case o := <-outcomes:
			pending--
			if o.err == nil {
				continue
			}
			if result == nil || consequence(result) && !consequence(o.err) {
				result = fmt.Errorf("rank %d of %d: %w", o.rank, len(w.ranks), o.err)
			}
			w.abandon()
		case <-watchdog.C:
			if hung {
				return result // not even the failure wakes them
			}
			hung = true
			if result == nil || consequence(result) {
				result = fmt.Errorf("%w for %v\n%s", errHung, w.patience, stacks())
			}
			w.abandon()
			watchdog.Reset(w.patience)
		}
	}
	return result
}

// consequence reports whether err may only be what another rank's error led to.
func consequence(err error) bool {
	return errors.Is(err, errStopped) || errors.Is(err, transport.ErrFailed)
}

// abandon wakes all ranks, from a goroutine of its own because the endpoints may
// be broken.
func (w *world) abandon() {
	if w.stopped {
		return
	}
	w.stopped = true
	close(w.stop)
	go func() {
		for _, r := range w.ranks {
			r.Fail(&transport.Failure{Kind: transport.FailureAborted, By: r.me, Text: "the check has failed"})
		}
	}()
}

// protected runs script and turns a panic into an error.
func protected(script func(r *rank) error, r *rank) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return script(r)
}

func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}

// await waits until ch is closed or has a value, or the world has been stopped.
func (w *world) await(ch <-chan struct{}) error {
	select {
	case <-ch:
		return nil
	case <-w.stop:
		return errStopped
	}
}

// gate opens when it has been passed as often as it was made for.
type gate struct {
	left   atomic.Int64
	opened chan struct{}
}

func newGate(times int) *gate {
	g := &gate{opened: make(chan struct{})}
	g.left.Store(int64(times))
	return g
}

func (g *gate) pass() {
	if g.left.Add(-1) == 0 {
		close(g.opened)
	}
}

// yield gives way to others, usually not at all.
func (r *rank) yield() {
	if r.rnd.IntN(4) == 0 {
		yield(r.rnd.IntN(50))
	}
}

// pause gives way so often that others may get to the middle of a wait and to
// sleep, or not at all.
func (r *rank) pause() {
	yield(r.rnd.IntN(2) * r.rnd.IntN(400))
}

func yield(times int) {
	for range times {
		runtime.Gosched()
	}
}
