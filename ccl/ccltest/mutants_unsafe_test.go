//go:build !race

package ccltest

import (
	"runtime"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// moreMutants break memory: what they do is a data race by design, so that the
// race detector would see them first.
var moreMutants = []mutant{
	{"writes beyond its output", "Guards", ccl.CollAllReduce, overrun(), nil},
	{"goes on writing to others after its call", "Leave", ccl.CollAllReduce, haunting(), nil},
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
