package ccltest

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// badKernels are mutants that take more than a line. stop is closed when they may
// end what they have left running.
func badKernels(stop <-chan struct{}) []mutant {
	reduce, gather, broadcast := ccl.CollAllReduce, ccl.CollAllGatherV, ccl.CollBroadcast

	steps, bytes := ringReduceKernel(none), ringReduceKernel(none)
	steps.Cost = func(s ccl.Shape) ccl.Cost {
		c := ringReduceCost(s)
		c.Steps--
		return c
	}
	bytes.Cost = func(s ccl.Shape) ccl.Cost {
		c := ringReduceCost(s)
		c.Bytes -= s.DType.Size()
		return c
	}

	// With steps of its own before the ring's.
	before := func(do func(c *ccl.Call) error) *ccl.Kernel {
		k := ringReduceKernel(none)
		k.Run = func(c *ccl.Call) error {
			if err := do(c); err != nil {
				return err
			}
			return ringReduce(none)(c)
		}
		return k
	}
	// With steps of its own after the ring's.
	after := func(do func(c *ccl.Call, err error) error) *ccl.Kernel {
		k := ringReduceKernel(none)
		k.Run = func(c *ccl.Call) error { return do(c, ringReduce(none)(c)) }
		return k
	}
	var asked atomic.Int64
	fickle := ringReduceKernel(none)
	fickle.Supports = func(ccl.Shape) error {
		if asked.Add(1)%3 == 0 {
			return errors.New("not this time")
		}
		return nil
	}

	return []mutant{
		{"panics", "Result", reduce, before(func(c *ccl.Call) error { panic("on purpose") }), nil},
		{"returns an error", "Result", reduce, before(func(c *ccl.Call) error { return errors.New("on purpose") }), nil},
		{"is declared to fold in rank order, but does not", "Result", reduce, ringReduceKernel(none),
			func(s *subject) { s.rankOrdered = true }},
		{"writes to its input", "Guards", reduce, after(func(c *ccl.Call, err error) error {
			c.In().Bytes()[0]++
			return err
		}), nil},
		{"writes to the gaps of an all-gather", "Guards", gather, gapWriter(), nil},
		{"works out of place only", "InPlace", reduce, outOfPlace(), nil},
		{"folds its own input first", "SameBits", reduce, ownFirst(func(rank int) int { return rank }), nil},
		{"folds in an order that changes from run to run", "SameBits", reduce, ownFirst(func(int) int { return int(asked.Add(1)) }), nil},
		{"assumes that the root comes first", "Jitter", broadcast, hasty(), nil},
		{"supports a shape on some ranks", "Supports", reduce, fickle, nil},
		{"declares a step too few", "Cost", reduce, steps, nil},
		{"declares an element too few", "Cost", reduce, bytes, nil},
		{"never returns after a failure", "Leave", reduce, after(func(c *ccl.Call, err error) error {
			if err != nil {
				<-stop
			}
			return err
		}), hangs},
		{"keeps state between calls", "Concurrent", broadcast, global(), nil},
		{"leaves a goroutine behind", "Leaks", reduce, before(func(c *ccl.Call) error {
			go func() { <-stop }()
			return nil
		}), hangs},
	}
}

// gapWriter clears its whole output before it gathers.
func gapWriter() *ccl.Kernel {
	k := ringGatherKernel()
	k.Run = func(c *ccl.Call) error {
		mine := append([]byte(nil), c.In().Bytes()...)
		clear(c.Out().Bytes())
		copy(c.OutOf(c.Rank()).Bytes(), mine)
		return ringGather(c)
	}
	return k
}

// outOfPlace clears its output before it reads its input.
func outOfPlace() *ccl.Kernel {
	k := ringReduceKernel(none)
	k.Run = func(c *ccl.Call) error {
		clear(c.Out().Bytes())
		return ringReduce(none)(c)
	}
	return k
}

// ownFirst sums floats that travel with the synchronisation, each rank starting
// from a rank of its choice.
func ownFirst(start func(rank int) int) *ccl.Kernel {
	k := foldReduceKernel(none)
	k.Run = func(c *ccl.Call) error {
		s := c.Shape()
		if !s.Eager || s.Op != ccl.Sum || s.DType != ccl.Float32 {
			return foldReduce(none)(c)
		}
		return c.Window(func(w *ccl.Window) error {
			first := start(c.Rank())
			out := c.Out().Bytes()
			for i := 0; i < len(out); i += 4 {
				var sum float32
				for d := range c.Size() {
					in := w.Of((first + d) % c.Size()).Bytes()
					sum += math.Float32frombits(binary.NativeEndian.Uint32(in[i:]))
				}
				binary.NativeEndian.PutUint32(out[i:], math.Float32bits(sum))
			}
			return nil
		})
	}
	return k
}

// blackboard is where kernels that ought to send messages leave their data.
type blackboard struct {
	mu   sync.Mutex
	data []byte
}

func (b *blackboard) write(data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data[:0], data...)
}

func (b *blackboard) read(data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	copy(data, b.data)
}

// hasty gives the root a head start instead of waiting for it.
func hasty() *ccl.Kernel {
	var board blackboard
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Rank() == c.Root() {
			board.write(c.Out().Bytes())
			return nil
		}
		for range 3 {
			runtime.Gosched()
		}
		board.read(c.Out().Bytes())
		return nil
	}
	return k
}

// global passes nothing but the turn, and leaves the data where everybody can see
// it.
func global() *ccl.Kernel {
	var board blackboard
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Rank() == c.Root() {
			board.write(c.Out().Bytes())
		}
		if err := chain(none)(c); err != nil {
			return err
		}
		runtime.Gosched()
		board.read(c.Out().Bytes())
		return nil
	}
	return k
}

// deafEndpoint does not notice that a context has ended.
type deafEndpoint struct{ transport.Endpoint }

func (d deafEndpoint) Enter(e *transport.Entry) (transport.Role, error) {
	e.Ctx = context.Background()
	return d.Endpoint.Enter(e)
}
