package ccltest

import (
	"runtime"
	"sync"

	"github.com/goccl/goccl/ccl"
)

// stateMutants keep something beyond their call.
func stateMutants(stop <-chan struct{}) []mutant {
	return []mutant{
		{"keeps its data in a variable of its package", "State", ccl.CollBroadcast, global(), nil},
		{"remembers the results of buffers that it knows", "State", ccl.CollAllReduce, knowing(), hangs},
		{"leaves a goroutine behind", "Leaks", ccl.CollAllReduce, before(func(c *ccl.Call) error {
			if s := c.Shape(); s.DType == ccl.Int32 && s.Bytes == 64 { // not so often as to fill the memory
				go func() { <-stop }()
			}
			return nil
		}), hangs},
		{"has room for 31 ranks", "Many", ccl.CollAllReduce, before(func(c *ccl.Call) error {
			_ = make([]int, 31)[c.Rank()%32]
			return nil
		}), nil},
	}
}

// global passes nothing but the turn, and leaves the data where all ranks can see
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

// knowing takes two calls on the same output buffer for one. It is right for means: those of float16 all have the
// same output, which is the engine's.
func knowing() *ccl.Kernel {
	var mu sync.Mutex
	results := make(map[*byte][]byte)
	k := ringReduceKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Shape().Op == ccl.Avg {
			return ringReduce(none)(c)
		}
		mu.Lock()
		result, ok := results[&c.Out().Bytes()[0]]
		mu.Unlock()
		if ok {
			copy(c.Out().Bytes(), result)
			return nil
		}
		out := &c.Out().Bytes()[0]
		err := ringReduce(none)(c)
		mu.Lock()
		defer mu.Unlock()
		results[out] = append(result, c.Out().Bytes()...)
		return err
	}
	return k
}
