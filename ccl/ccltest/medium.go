package ccltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/test/calls"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
)

// medium is a way to connect ranks; see the package comment.
type medium struct {
	name   string
	about  string
	open   func(ranks int) ([]transport.Endpoint, error)
	jitter bool
	copies bool // messages and views are copied, in pieces
	scarce bool // its messages are so short that long calls are slow
	helps  bool // in large calls several ranks run the bodies of all
}

var (
	poll = medium{name: "poll", about: "goroutines that share memory; each runs its own part", open: func(ranks int) ([]transport.Endpoint, error) {
		return local.NewWaiting(ranks, local.Poll), nil
	}}
	park = medium{name: "park", about: "goroutines that sleep; the last to arrive runs the others' parts", helps: true, open: func(ranks int) ([]transport.Endpoint, error) {
		return local.NewWaiting(ranks, local.Park), nil
	}}
	arena = medium{name: "arena", about: "processes' shared memory, on the heap: messages and views are copied", copies: true, open: func(ranks int) ([]transport.Endpoint, error) {
		return shm.NewHeap(ranks, shm.DefaultGeometry(ranks))
	}}
	smallest = medium{name: "smallest", about: "like arena, with messages of 16 bytes and views of 144: messages and inputs arrive in pieces", copies: true, scarce: true, open: func(ranks int) ([]transport.Endpoint, error) {
		return shm.NewHeap(ranks, shm.SmallestGeometry(ranks))
	}}
	// everywhere is for checks that compare media.
	everywhere = medium{name: "everywhere"}
)

// jittered returns the media with delays.
func jittered(media ...medium) []medium {
	for i := range media {
		media[i].name += "+jitter"
		media[i].about += "; with delays"
		media[i].jitter = true
	}
	return media
}

// in adds the description of the medium to an error.
func (w medium) in(err error) error {
	if err == nil || w.about == "" {
		return err
	}
	return fmt.Errorf("%w\nmedium: %s: %s", err, w.name, w.about)
}

// group is n ranks that are connected and have joined.
type group struct {
	s        *subject
	medium   medium
	settings *config.Settings
	ranks    []*rank
	nodes    int   // of a group with two levels; otherwise 0 or 1
	native   bool  // the transport has collectives of its own
	switches []int // lengths in bytes at which some part may switch paths
	lingers  bool  // of the probe
	stop     sync.Once
	alive    atomic.Uint64           // number of calls that have ended
	culprit  atomic.Pointer[culprit] // the first
	late     atomic.Pointer[string]  // the goroutines of kernels that another rank waited for in vain
}

type rank struct {
	g     *group
	me    int
	n     int
	comm  *ccl.Communicator
	trace trace
}

// probe contains the hooks of a check. The zero value has none.
type probe struct {
	seed    uint64          // of the delays
	step    func(rank int)  // called before each call of a rank's endpoint
	observe func(*ccl.Call) // called after each run of the kernel
	lingers bool            // goroutines that a kernel has started linger in verbs, so that these overlap
}

// errHangs is the error of a group that makes no progress outside of a call's waits.
var errHangs = errors.New("no call has ended")

// with connects n ranks in medium w, calls play with them, and closes them. It adds to the error of
// a found result what became of the inputs.
func (s *subject) with(w medium, n int, p probe, play func(g *group) error) error {
	g, err := s.connect(w, n, p)
	if err != nil {
		return err
	}
	err = func() error {
		defer g.close()
		return play(g)
	}()
	if found, ok := errors.AsType[*calls.WrongError](err); ok && p.step == nil {
		return fmt.Errorf("%w%s", err, s.inputsText(w, n, p.seed, found))
	}
	return err
}

func (s *subject) connect(w medium, n int, p probe) (*group, error) {
	g := &group{s: s, medium: w, lingers: p.lingers}
	settings, err := s.settings(n, func(c *ccl.Call) error { return g.runKernel(c, p.observe) })
	if err != nil {
		return nil, err
	}
	eps, err := w.open(n)
	if err != nil {
		return nil, err
	}

	g.settings, g.switches = settings, s.switches(eps[0], settings)
	for i, ep := range eps {
		r := &rank{g: g, me: i, n: n}
		eps[i] = newStepping(ep, p.stepOf(r, w.jitter), r)
		g.ranks = append(g.ranks, r)
	}

	errs := make([]error, n)
	var joining sync.WaitGroup
	for i, r := range g.ranks {
		joining.Go(func() {
			r.comm, errs[i] = ccl.New(context.Background(), eps[i], ccl.WithSelector(settings))
		})
	}

	joining.Wait()
	if err := errors.Join(errs...); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// stepOf returns the function that a rank calls at each of its steps.
func (p probe) stepOf(r *rank, jitter bool) func() {
	delays := delays(calls.Mix(p.seed)+uint64(r.me), r.n, &r.trace)
	return func() {
		if jitter {
			delays()
		}
		if p.step != nil {
			p.step(r.me)
		}
	}
}

// switches returns lengths of inputs, in bytes, at which a transport, the engine or the
// kernel may switch paths.
func (s *subject) switches(ep transport.Endpoint, settings *config.Settings) []int {
	at := []int{transport.InlineBytes, ep.PayloadLimit()}
	if staging := ep.Staging(); staging != nil {
		at = append(at, staging.PieceBytes())
	}
	for _, p := range s.declared(ep.Size(), settings) {
		at = append(at, p.bytes, p.bytes*ep.Size())
	}
	return at
}

// parameter is a parameter of the algorithm that is a length.
type parameter struct {
	name  string // in ccl.yaml
	bytes int
}

// declared returns the lengths that the algorithm declares as parameters.
func (s *subject) declared(ranks int, settings *config.Settings) (all []parameter) {
	choice, err := settings.Choose(ccl.Shape{
		Collective: s.coll, Ranks: ranks, Bytes: 4, Total: 4, DType: ccl.Float32, Topology: settings.Topology(),
	}, "")
	if err != nil || choice.Params == nil {
		return nil // a shape that the kernel does not support has no parameters
	}
	for field, value := range reflect.ValueOf(choice.Params).Elem().Fields() {
		if value.Type() == reflect.TypeFor[ccl.ByteSize]() {
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			all = append(all, parameter{cmp.Or(name, strings.ToLower(field.Name)), int(value.Int())})
		}
	}
	return all
}

func (g *group) close() {
	for _, r := range g.ranks {
		if r.comm != nil {
			r.comm.Close()
		}
	}
}

// each runs script on all ranks concurrently, and returns the error nearest to the cause,
// the first of several, with the messages of the call. A rank that fails its script aborts the
// group, so that the others end too.
func (g *group) each(script func(r *rank) error) error {
	return g.charted(g.onAll(script))
}

// charted adds to an error the messages of the last call: not if the call was refused, which sends
// none, nor if a kernel failed by itself, which says why and at which line.
func (g *group) charted(err error) error {
	if err == nil || blame(err) == "Supports" || g.culprit.Load() != nil {
		return err
	}
	return withEvidence(err, "", g.chart())
}

func (g *group) onAll(script func(r *rank) error) error {
	outcomes := make(chan error, len(g.ranks))
	for _, r := range g.ranks {
		go func() {
			err := protected(script, r)
			if err != nil {
				err = fmt.Errorf("rank %d of %d: %w", r.me, r.n, err)
			}
			outcomes <- withFrames(err)
		}()
	}

	watchdog := time.NewTicker(g.s.patience)
	defer watchdog.Stop()
	var result error
	seen := g.alive.Load()

	for pending := len(g.ranks); pending > 0; {
		select {
		case err := <-outcomes:
			watchdog.Reset(g.s.patience)
			seen = g.alive.Load()
			pending--
			if err == nil {
				continue
			}
			if result == nil || weight(result) < weight(err) {
				result = err
			}

			g.abandon(err)

		case <-watchdog.C:
			if now := g.alive.Load(); now != seen {
				seen = now
				continue
			}

			hung := withEvidence(fmt.Errorf("%w for %v", errHangs, g.s.patience), kernelStacks(), nil)
			g.abandon(hung)
			if result != nil {
				return fmt.Errorf("%w\nand then %w%s", result, hung, g.traces())
			}
			return fmt.Errorf("%w%s", hung, g.traces())
		}
	}
	if astray(result) { // by now the verbs of the other ranks have failed too, and are known
		result = fmt.Errorf("%w%s", result, g.traces())
	}
	if late := g.late.Load(); late != nil {
		result = withEvidence(result, *late, nil)
	}
	if c := g.culprit.Load(); c != nil && weight(result) < ownFault {
		result = withFrames(fmt.Errorf("rank %d of %d: %w\nand then %v", c.rank, len(g.ranks), c.err, result))
	}
	return result
}

// abandon aborts the group's calls.
func (g *group) abandon(err error) {
	g.stop.Do(func() {
		for _, r := range g.ranks {
			r.comm.Abort(err)
		}
	})
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
