//go:build !race

package ccltest

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// moreMutants are for runs without the race detector, which would be the first to
// see what some of them do, and allocates itself.
var moreMutants = []mutant{
	{"is Shared, but sends messages", "Result", ccl.CollAllReduce, sharedRing(), hangs},
	{"allocates", "Allocs", ccl.CollAllReduce, wasteful(), nil},
	{"writes beyond its output", "Guards", ccl.CollAllReduce, overrun(), nil},
	{"goes on writing to others after its call", "Leave", ccl.CollAllReduce, haunting(), nil},
}

// sharedRing sends messages on behalf of ranks that sleep.
func sharedRing() *ccl.Kernel {
	k := ringReduceKernel(none)
	k.Shared = true
	return k
}

// wasteful makes itself a buffer in every call.
func wasteful() *ccl.Kernel {
	var sink atomic.Pointer[byte]
	k := ringReduceKernel(none)
	k.Run = func(c *ccl.Call) error {
		sink.Store(&make([]byte, 8)[0])
		return ringReduce(none)(c)
	}
	return k
}

// overrun writes one byte more than it may.
func overrun() *ccl.Kernel {
	k := ringReduceKernel(none)
	k.Run = func(c *ccl.Call) error {
		err := ringReduce(none)(c)
		out := c.Out().Bytes()
		unsafe.Slice(&out[0], len(out)+1)[len(out)]++
		return err
	}
	return k
}

// haunting leaves a goroutine that writes to a peer's input for a while.
func haunting() *ccl.Kernel {
	k := foldReduceKernel(none)
	k.Run = func(c *ccl.Call) error {
		return c.Window(func(w *ccl.Window) error {
			peer := w.Of((c.Rank() + 1) % c.Size()).Bytes()
			err := w.FoldToAll(w.Share())
			go func() {
				for range 200 {
					peer[0]++
					runtime.Gosched()
				}
			}()
			return err
		})
	}
	return k
}
