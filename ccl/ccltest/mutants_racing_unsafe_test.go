//go:build !race

package ccltest

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// racingMutants are for runs without the race detector, which would be the first to
// see what most of them do, and allocates itself.
var racingMutants = []mutant{
	{"is Shared, but sends messages", "Messages", ccl.CollAllReduce, sharedRing(), hangs},
	{"writes beyond its output", "Guards", ccl.CollAllReduce, overrun(), nil},
	{string(everybodys), "InPlace", ccl.CollAllReduce, foldReduceKernel(everybodys), nil},
	{"goes on writing to its output after its call", "Leave", ccl.CollAllReduce, haunting(), nil},
	{"allocates", "Allocs", ccl.CollAllReduce, wasteful(), nil},
}

// sharedRing sends messages on behalf of ranks that sleep.
func sharedRing() *ccl.Kernel {
	k := ringReduceKernel(none)
	k.Shared = true
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

// haunting leaves the first byte of its output to a goroutine that it does not wait
// for.
func haunting() *ccl.Kernel {
	return after(func(c *ccl.Call, err error) error {
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
