package ccltest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goccl/goccl/ccl"
)

// messageMutants send messages that no rank receives, wait for messages that no rank sends, fail, or
// refuse what they do not say that they would.
func messageMutants(stop <-chan struct{}) []mutant {
	reduce, gather, broadcast := ccl.CollAllReduce, ccl.CollAllGather, ccl.CollBroadcast

	var asked atomic.Int64
	fickle := ringReduceKernel(none)
	fickle.Supports = func(ccl.Shape) error {
		if asked.Add(1)%3 == 0 {
			return errors.New("not this time")
		}
		return nil
	}
	forTwo := before(func(c *ccl.Call) error {
		var blocks [2]ccl.Buffer // one for each rank
		for r := range c.Size() {
			blocks[r] = c.Out().Block(r, c.Size())
		}
		return nil
	})
	refusing := before(func(c *ccl.Call) error {
		if c.Shape().Op == ccl.Avg {
			return fmt.Errorf("no averages: %w", ccl.ErrNotImplemented)
		}
		return nil
	})

	return []mutant{
		{string(sendFirst), "Messages", reduce, ringReduceKernel(sendFirst), hangs},
		{string(bothSend), "Messages", reduce, doublingReduceKernel(bothSend), hangs},
		{string(wrongPeer), "Messages", reduce, ringReduceKernel(wrongPeer), hangs},
		{string(early), "Messages", reduce, ringReduceKernel(early), hangs},
		{string(skipsEmpty), "Messages", reduce, ringReduceKernel(skipsEmpty), hangs},
		{string(fullCircle), "Messages", broadcast, chainKernel(fullCircle), hangs},
		{string(swaps) + ", of different lengths", "Messages", broadcast, inPartsKernel(2, 3, swaps), hangs},
		{string(ownCount), "Messages", gather, ringGatherKernel(ownCount), hangs},

		{"fails on purpose", "Completes", reduce, before(func(*ccl.Call) error { return errors.New("on purpose") }), nil},
		{"panics on purpose", "Completes", reduce, before(func(*ccl.Call) error { panic("on purpose") }), nil},
		{"is for two ranks, but does not say so", "Completes", reduce, forTwo, nil},
		{"waits for something other than its verbs", "Completes", reduce, waiting(stop), hangs},
		{"slices beyond the end of its buffer", "Completes", reduce, before(func(c *ccl.Call) error {
			_ = c.Out().Slice(0, c.Out().Len()+1)
			return nil
		}), nil},
		{"slices beyond the end of its buffer on one rank", "Completes", broadcast, overreaching(), hangs},
		{"makes the last rank its own successor", "Completes", broadcast, ownSuccessor(), hangs},
		{"fails on purpose on one rank", "Completes", reduce, before(func(c *ccl.Call) error {
			if c.Rank() == 1 {
				return errors.New("on purpose")
			}
			return nil
		}), nil},
		{string(undeclared), "Completes", reduce, doublingReduceKernel(undeclared), nil},
		{"looks at the first element of an empty block", "Completes", reduce, before(func(c *ccl.Call) error {
			_ = c.Out().Block(c.Rank(), c.Size()).Bytes()[0]
			return nil
		}), nil},
		{"sends a message to itself", "Completes", reduce, before(func(c *ccl.Call) error { return c.Send(c.Rank(), c.In()) }), nil},
		{string(sameMemory), "Completes", reduce, doublingReduceKernel(sameMemory), nil},
		{string(secondView), "Completes", reduce, viewReduceKernel(secondView), nil},
		{string(backwards), "Completes", reduce, viewReduceKernel(backwards), nil},

		{"supports a shape on some ranks", "Supports", reduce, fickle, nil},
		{"refuses while it runs", "Supports", reduce, refusing, nil},
	}
}

// waiting does not return on rank 1 before stop is closed.
func waiting(stop <-chan struct{}) *ccl.Kernel {
	return before(func(c *ccl.Call) error {
		if c.Rank() == 1 {
			<-stop
		}
		return nil
	})
}

// overreaching ends a broadcast with an odd message, and only then slices beyond the
// end: the one who gets the message may be the first to fail.
func overreaching() *ccl.Kernel {
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Rank() != c.Root() {
			return chain(none)(c)
		}
		next := (c.Rank() + 1) % c.Size()
		err := c.Send(next, c.Out().Slice(0, 0))
		_ = c.Out().Slice(0, c.Out().Len()+1)
		return err
	}
	return k
}

// ownSuccessor is a broadcast by a chain that does not close to a ring.
func ownSuccessor() *ccl.Kernel {
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Rank() != c.Root() {
			if err := c.Recv((c.Rank()+c.Size()-1)%c.Size(), c.Out()); err != nil {
				return err
			}
		}
		return c.Send(min(c.Rank()+1, c.Size()-1), c.Out())
	}
	return k
}

// before returns a ring's all-reduce with steps of its own before the ring's.
func before(do func(c *ccl.Call) error) *ccl.Kernel {
	k := ringReduceKernel(none)
	ring := k.Run
	k.Run = func(c *ccl.Call) error {
		if err := do(c); err != nil {
			return err
		}
		return ring(c)
	}
	return k
}

// after returns one with steps of its own after the ring's.
func after(do func(c *ccl.Call, err error) error) *ccl.Kernel {
	k := ringReduceKernel(none)
	ring := k.Run
	k.Run = func(c *ccl.Call) error { return do(c, ring(c)) }
	return k
}

// A failure of Messages names the call, the sender and the one who does not receive.
func TestMessagesNamesRanks(t *testing.T) {
	for _, test := range []struct {
		kernel *ccl.Kernel
		coll   ccl.Collective
		want   []string
	}{
		// The first call has root 0, so that rank 2 sends what rank 0 does not receive.
		{chainKernel(fullCircle), ccl.CollBroadcast, []string{
			"broadcast of", "call 1,", "rank 2 waits for rank 0 to take a message", "rank 0 has returned from its kernel"}},
		{inPartsKernel(2, 3, swaps), ccl.CollBroadcast, []string{
			"broadcast of", "call 1,", "receive from rank 0", "bytes where this rank expects"}},
		{ringReduceKernel(sendFirst), ccl.CollAllReduce, []string{
			"all_reduce of", "call 1,", "rank 0 waits for rank 1 to take a message",
			"rank 1 waits for rank 2 to take a message", "rank 2 waits for rank 0 to take a message"}},
	} {
		s := subjectOf(test.coll, test.kernel)
		hangs(s)
		for _, w := range checkNamed("Messages").media {
			err := messages(s, w, 3)
			if err == nil {
				t.Errorf("%s: it passes", w.name)
				continue
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is not in\n%v", w.name, want, err)
				}
			}
		}
	}
}
