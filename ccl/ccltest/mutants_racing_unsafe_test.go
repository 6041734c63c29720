//go:build !race

package ccltest

import (
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// racingMutants are for runs without the race detector, which would be the first to
// see what most of them do, and allocates itself.
var racingMutants = []mutant{
	{"is Shared, but sends messages", "Messages", ccl.CollAllReduce, sharedRing(), hangs},
	{"writes beyond its output", "Guards", ccl.CollAllReduce, overrun(), nil},
	{string(allParts), "InPlace", ccl.CollAllReduce, viewReduceKernel(allParts), nil},
	{"goes on writing to its output after its call", "Leave", ccl.CollAllReduce, haunting(), nil},
	{"allocates", "Allocs", ccl.CollAllReduce, wasteful(), nil},
}

// sharedRing sends messages on behalf of ranks that sleep.
func sharedRing() *ccl.Kernel {
	k := ringReduceKernel(none)
	k.AnyRunner = true
	return k
}

// overrun writes one byte more than it may.
func overrun() *ccl.Kernel {
	return after(func(c *ccl.Call, err error) error {
		out := c.Out().Bytes()
		unsafe.Slice(&out[0], len(out)+1)[len(out)]++
		return err
	})
}

// The element that is written, and of what, is named.
func TestGuardsNameElement(t *testing.T) {
	for want, k := range map[string]*ccl.Kernel{
		": memory behind the output of 1 elements, at element 1, was written: 95 became ": overrun(),
		": element 0 of the input was written: ": after(func(c *ccl.Call, err error) error {
			c.In().Bytes()[0]++
			return err
		}),
	} {
		if err := guards(subjectOf(ccl.CollAllReduce, k), poll, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v instead of %q", err, want)
		}
	}
	err := guards(subjectOf(ccl.CollBroadcast, rootWriter()), poll, 2)
	if err == nil || !strings.Contains(err.Error(), "element 0 of the root's buffer was written") {
		t.Errorf("%v", err)
	}
}

// rootWriter writes to the root's buffer, and not the same twice.
func rootWriter() *ccl.Kernel {
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		err := chain(none)(c)
		if c.Rank() == c.Root() {
			c.Out().Bytes()[0]++
		}
		return err
	}
	return k
}

// haunting leaves the first byte of its output to a goroutine that it does not wait
// for. It is right for means: the outputs of those of float16 are the engine's.
func haunting() *ccl.Kernel {
	return after(func(c *ccl.Call, err error) error {
		if c.Shape().Op == ccl.Avg {
			return err
		}
		first := &c.Out().Bytes()[0]
		result := *first
		go func() {
			for range 200 {
				*first = result
				runtime.Gosched()
			}
		}()
		return err
	})
}

// wasteful makes itself a buffer in every call.
func wasteful() *ccl.Kernel {
	var sink atomic.Pointer[byte]
	return before(func(*ccl.Call) error {
		sink.Store(&make([]byte, 8)[0])
		return nil
	})
}

// A kernel whose goroutines share its Call is told so, and not what messages have become.
func TestTwoGoroutines(t *testing.T) {
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Rank() != c.Root() {
			return c.Recv(c.Root(), c.Out())
		}
		var sending sync.WaitGroup
		for r := range c.Size() {
			if r != c.Root() {
				sending.Go(func() { _ = c.Send(r, c.Out()) })
			}
		}
		sending.Wait()
		return nil
	}
	text := firstFailure(t, subjectOf(ccl.CollBroadcast, k), 3)
	want := regexp.MustCompile(`Send at mutants_racing_unsafe_test\.go:\d+: two goroutines use one Call at the same time; it belongs to the goroutine that runs the kernel\n(.*\n)*rule: Completes`)
	if !want.MatchString(text) {
		t.Error(text)
	}
}
