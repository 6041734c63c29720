package ccl_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

var errKernel = errors.New("the kernel is out of order")

// rightReduce is an all-reduce that works.
func rightReduce(c *ccl.Call) error { return direct.Algorithm.Kernels[ccl.CollAllReduce].Run(c) }

// A kernel that panics makes the call fail with an error that names it. The process and other
// groups live on, also if another rank runs the kernel.
func TestKernelPanics(t *testing.T) {
	for _, shared := range []bool{false, true} {
		everyWorld(t, func(t *testing.T, connect connector) {
			for culprit := range 3 {
				crash := &ccl.Kernel{AnyRunner: shared, Run: func(c *ccl.Call) error {
					if c.Rank() == culprit {
						panic(errKernel)
					}
					return rightReduce(c)
				}}
				group := join(t, connect, settings(t, 3, patient, map[string]*ccl.Kernel{"crash": crash}))
				errs := each(3, func(r int) error { return sum(group[r], 1000, ccl.WithAlgorithm("crash")) })
				var panicked *ccl.KernelPanicError
				require.ErrorAs(t, errs[culprit], &panicked)
				require.Equal(t, "crash all_reduce", panicked.Kernel)
				require.Equal(t, errKernel, panicked.Value)
				require.Contains(t, string(panicked.Stack), "engine_kernel_test.go")
				require.ErrorIs(t, errs[culprit], errKernel)
				for r, err := range errs {
					if r == culprit {
						continue
					}
					var aborted *transport.AbortedError
					require.ErrorAs(t, err, &aborted)
					require.Equal(t, culprit, aborted.By)
					require.Regexp(t, `kernel crash all_reduce panicked at engine_kernel_test.go:\d+: the kernel is out of order`, err.Error())
				}
			}
		})
	}
}

// A panic is reported at a line of the kernel, also if the engine or the runtime panics.
func TestPanicPlace(t *testing.T) {
	for name, run := range map[string]func(*ccl.Call) error{
		"slice":  func(c *ccl.Call) error { return c.Send(1-c.Rank(), c.In().Slice(0, 99)) },
		"index":  func(c *ccl.Call) error { return c.Send([]int{1}[c.Size()+5], c.In()) },
		"params": func(c *ccl.Call) error { _ = ccl.ParamsOf[int](c); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := join(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil },
				settings(t, 2, patient, map[string]*ccl.Kernel{"crash": {Run: run}}))
			for _, err := range each(2, func(r int) error { return sum(g[r], 5, ccl.WithAlgorithm("crash")) }) {
				require.Regexp(t, `kernel crash all_reduce panicked at engine_kernel_test.go:\d+: `, err.Error())
			}
		})
	}
}

// If ranks wait for each other inside a kernel, the errors name the rank that gave up, the rank it
// waited for, and what each of them was doing.
func TestDeadlockedKernel(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		t.Parallel() // it only waits
		wait := &ccl.Kernel{Run: func(c *ccl.Call) error {
			return c.Recv((c.Rank()+1)%c.Size(), c.Out())
		}}
		g := join(t, connect, settings(t, 3, patient, map[string]*ccl.Kernel{"wait": wait}))
		for r, err := range each(3, func(r int) error {
			return sum(g[r], 5, ccl.WithAlgorithm("wait"), ccl.WithTimeout(time.Second)) // by when all wait
		}) {
			var timeout *transport.TimeoutError
			require.ErrorAs(t, err, &timeout)
			behind := (timeout.By + 1) % 3
			require.Equal(t, []int{behind}, timeout.Behind)
			var failed *ccl.CollectiveFailedError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, (r+1)%3, failed.Awaited)
			require.Equal(t, fmt.Sprintf(
				"ccl: all_reduce of 5 float32 by wait, call 1 at LINE, rank %d: receive from rank %d: timed out after 1s: rank %d waited for rank %d inside call 1 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call)",
				r, (r+1)%3, timeout.By, behind), withoutLines(err))
		}
	})
}

// The rank whose kernel returns an error returns it; the errors of the others name that rank.
func TestKernelErrors(t *testing.T) {
	for _, shared := range []bool{false, true} {
		everyWorld(t, func(t *testing.T, connect connector) {
			bad := &ccl.Kernel{AnyRunner: shared, Run: func(c *ccl.Call) error {
				if c.Rank() == 1 {
					return fmt.Errorf("step 3: %w", errKernel)
				}
				return rightReduce(c)
			}}
			group := join(t, connect, settings(t, 3, patient, map[string]*ccl.Kernel{"bad": bad}))
			errs := each(3, func(r int) error { return sum(group[r], 1000, ccl.WithAlgorithm("bad")) })
			require.ErrorIs(t, errs[1], errKernel)
			for _, r := range []int{0, 2} {
				var aborted *transport.AbortedError
				require.ErrorAs(t, errs[r], &aborted)
				require.Equal(t, 1, aborted.By)
				require.Contains(t, errs[r].Error(), "step 3: the kernel is out of order")
			}
			requireFailedFor(t, group[1:2], func(err error) bool { return errors.Is(err, errKernel) })
		})
	}
}

// A kernel that misuses a verb makes the call fail, even if it drops the verb's error.
func TestKernelMisusesVerbs(t *testing.T) {
	ring := func(c *ccl.Call) topology.Ring { return topology.NewRing(c.Size(), c.Rank()) }
	for name, x := range map[string]struct {
		run  func(c *ccl.Call) error
		want string
	}{
		"send to itself":       {func(c *ccl.Call) error { return c.Send(c.Rank(), c.In()) }, "exchanges a message with itself"},
		"receive from no rank": {func(c *ccl.Call) error { return c.Recv(2, c.Out()) }, "rank 2 is not a rank of a group of 2"},
		"send to no rank":      {func(c *ccl.Call) error { return c.Send(-2, c.In()) }, "rank -2 is not a rank of a group of 2"},
		"send beyond an edge": {func(c *ccl.Call) error {
			return c.Send(c.Shape().Topology.Neighbors(c.Rank())[topology.North], c.In())
		}, "rank -1 is not a rank of a group of 2"},
		"receive from beyond an edge": {func(c *ccl.Call) error {
			return c.RecvReduce(topology.None, c.Out(), c.In())
		}, "rank -1 is not a rank of a group of 2"},
		"send and receive in one place": {func(c *ccl.Call) error {
			return c.SendRecv(ring(c).Next, c.Out().Slice(0, 3), ring(c).Prev, c.Out().Slice(2, 5))
		}, "a buffer is sent and, at the same time, received into"},
		"reduce into a part of oneself": {func(c *ccl.Call) error {
			return c.SendRecvReduce(ring(c).Next, c.Scratch(3), ring(c).Prev, c.Out().Slice(0, 3), c.Out().Slice(1, 4))
		}, "overlaps it in part"},
		"reduce into another length": {func(c *ccl.Call) error {
			return c.RecvReduce(ring(c).Prev, c.Out(), c.In().Slice(0, 1))
		}, "reduction with 1 elements into 5"},
		"copy to another length": {func(c *ccl.Call) error { return c.Copy(c.Out(), c.In().Slice(0, 1)) }, "copy of 1 elements to 5"},
		"send without a receive": {func(c *ccl.Call) error {
			return c.SendRecv(ring(c).Next, c.In().Slice(0, 3), ring(c).Prev, c.Scratch(5))
		}, "it sent 12 bytes where this rank expects 20"},
		"open two views": {func(c *ccl.Call) error {
			return errors.Join(rightReduce(c), rightReduce(c))
		}, "the kernel opened a second view"},
		"reduce too much": {func(c *ccl.Call) error {
			return c.View(func(v *ccl.View) error { return v.ReduceToAll(ccl.Range{Lo: 0, Hi: v.Len() + 1}) })
		}, "outside of the view's piece"},
		"copy a piece to another length": {func(c *ccl.Call) error {
			return c.View(func(v *ccl.View) error { return v.Copy(c.Out().Slice(0, 1), 0) })
		}, "buffer of another length"},
		"drop the error of a verb": {func(c *ccl.Call) error {
			_ = c.Send(c.Rank(), c.In())
			return nil
		}, "exchanges a message with itself"},
		"drop the error of a view": {func(c *ccl.Call) error {
			return c.View(func(v *ccl.View) error {
				_ = v.ReduceToAll(ccl.Range{Lo: -1, Hi: 1})
				return nil
			})
		}, "outside of the view's piece"},
		"drop the error of a view's copy": {func(c *ccl.Call) error {
			return c.View(func(v *ccl.View) error {
				_ = v.Copy(c.Out().Slice(0, 1), 0)
				return nil
			})
		}, "buffer of another length"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			everyWorld(t, func(t *testing.T, connect connector) {
				kernel := &ccl.Kernel{Run: x.run}
				group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"odd": kernel}))
				for _, err := range each(2, func(r int) error { return sum(group[r], 5, ccl.WithAlgorithm("odd")) }) {
					require.ErrorContains(t, err, x.want)
					require.Regexp(t, `[A-Z]\w+ at (engine_kernel_test|direct)\.go:\d+`, err.Error(), "the verb and the line of the kernel")
				}
			})
		})
	}
}

// The error of a verb that is called wrongly names its peers.
func TestMisuseNamesPeers(t *testing.T) {
	odd := &ccl.Kernel{Run: func(c *ccl.Call) error { return c.SendRecvReduce(2, c.In(), 1-c.Rank(), c.Out(), c.In()) }}
	g := join(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil },
		settings(t, 2, patient, map[string]*ccl.Kernel{"odd": odd}))
	for _, err := range each(2, func(r int) error { return sum(g[r], 5, ccl.WithAlgorithm("odd")) }) {
		require.Regexp(t, `SendRecvReduce at engine_kernel_test\.go:\d+, to rank 2, from rank \d: rank 2 is not a rank of a group of 2$`, err.Error())
	}
}

// The verbs of a Call whose Run has returned fail.
func TestCallEndsWithRun(t *testing.T) {
	kept := make([]*ccl.Call, 2)
	keep := &ccl.Kernel{Run: func(c *ccl.Call) error {
		kept[c.Rank()] = c
		return rightReduce(c)
	}}
	g := join(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil },
		settings(t, 2, patient, map[string]*ccl.Kernel{"keep": keep}))
	require.Equal(t, []error{nil, nil}, each(2, func(r int) error { return sum(g[r], 5, ccl.WithAlgorithm("keep")) }))
	for name, verb := range map[string]func(c *ccl.Call) error{
		"Send":   func(c *ccl.Call) error { return c.Send(1-c.Rank(), c.Out()) },
		"Reduce": func(c *ccl.Call) error { return c.Reduce(c.Out(), c.Out(), c.Out()) },
		"View":   func(c *ccl.Call) error { return c.View(func(*ccl.View) error { return nil }) },
	} {
		require.Regexp(t, name+` at engine_kernel_test\.go:\d+.*: the kernel has returned from Run, after which its Call is not valid$`, verb(kept[0]).Error())
	}
}

// ReduceToAll is rejected, on every transport, in collectives without a reduction that goes to all
// ranks or to the root.
func TestFoldToAllOfABroadcast(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		odd := &ccl.Kernel{Run: rightReduce}
		group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"odd": odd}))
		for _, err := range each(2, func(r int) error {
			return ccl.Broadcast(t.Context(), group[r], make([]float32, 100), 0, ccl.WithAlgorithm("odd"))
		}) {
			require.ErrorContains(t, err, "the kernel calls ReduceToAll, which all-reduces and reduces have, in a call of broadcast")
		}
	})
}

// ScanToAll is rejected, on every transport, in collectives other than scans.
func TestScanToAllOfAnAllReduce(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		odd := &ccl.Kernel{Run: func(c *ccl.Call) error {
			return c.View(func(v *ccl.View) error { return v.ScanToAll(v.Part()) })
		}}
		group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"odd": odd}))
		for _, err := range each(2, func(r int) error { return sum(group[r], 100, ccl.WithAlgorithm("odd")) }) {
			require.ErrorContains(t, err, "the kernel calls ScanToAll, which scans have, in a call of all_reduce")
		}
	})
}

// A call does not succeed if its kernel drops the error of a reduction that was interrupted.
func TestKernelDropsFailedFold(t *testing.T) {
	for _, waiting := range []local.Waiting{local.Poll, local.Park} { // elsewhere folds are not cut short
		var group []*ccl.Communicator
		deaf := &ccl.Kernel{Run: func(c *ccl.Call) error {
			return c.View(func(v *ccl.View) error {
				group[c.Rank()].Abort(errKernel)
				_ = v.ReduceToAll(v.Part())
				return nil
			})
		}}
		connect := func(n int) ([]transport.Endpoint, error) { return local.NewWaiting(n, waiting), nil }
		group = join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"deaf": deaf}))
		for r, err := range each(2, func(r int) error { return sum(group[r], 100, ccl.WithAlgorithm("deaf")) }) {
			var aborted *transport.AbortedError
			require.ErrorAs(t, err, &aborted, "rank %d", r)
		}
	}
}

// A failure does not interrupt what a kernel does to memory of its own rank: if such a call returns
// nil, all of it was done.
func TestOwnMemoryInAFailedGroup(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		var group []*ccl.Communicator
		finish := &ccl.Kernel{Run: func(c *ccl.Call) error {
			group[c.Rank()].Abort(errKernel)
			if err := c.Reduce(c.Out(), c.In(), c.In()); err != nil {
				return err
			}
			c.Epilogue(c.Out())
			return nil
		}}
		group = join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"finish": finish}))
		x := slices.Repeat([]float64{3}, 100_000)
		for r, err := range each(2, func(r int) error {
			y := slices.Clone(x)
			err := ccl.AllReduce(t.Context(), group[r], y, y, ccl.Avg, ccl.WithAlgorithm("finish"))
			require.Equal(t, x, y)
			return err
		}) {
			if err != nil {
				var aborted *transport.AbortedError
				require.ErrorAs(t, err, &aborted, "rank %d", r)
			}
		}
	})
}

// A kernel that ends its goroutine (runtime.Goexit) ends its rank. The other ranks do not wait for
// ever: they get an error.
func TestKernelExitsGoroutine(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		exit := &ccl.Kernel{Run: func(c *ccl.Call) error {
			if c.Rank() == 1 {
				runtime.Goexit()
			}
			return rightReduce(c)
		}}
		group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"exit": exit}))
		errs := each(2, func(r int) error {
			if r == 1 {
				defer group[1].Close()
			}
			return sum(group[r], 100, ccl.WithAlgorithm("exit"))
		})
		var aborted *transport.AbortedError
		require.ErrorAs(t, errs[0], &aborted)
		require.Equal(t, 1, aborted.By)
		require.ErrorContains(t, errs[0], "it ended its goroutine by runtime.Goexit")
	})
}

// If that happens in a coalesced call, the call ends exactly once, and later calls return the
// failure.
func TestKernelExitsGoroutineOfACoalescedCall(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		exit := &ccl.Kernel{Run: func(*ccl.Call) error { runtime.Goexit(); return nil }}
		group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"exit": exit}))
		each(2, func(r int) error {
			x := make([]float32, 100)
			return ccl.AllReduceCoalesced(bg, group[r], [][]float32{x}, ccl.Sum, ccl.WithAlgorithm("exit"))
		})
		for r, err := range each(2, func(r int) error { return group[r].Barrier(bg) }) {
			require.ErrorIs(t, err, ccl.ErrInvalidCommunicator, "rank %d", r)
			require.ErrorContains(t, err, "it ended its goroutine by runtime.Goexit")
			require.ErrorContains(t, group[r].Barrier(bg), "failed before")
			require.NoError(t, group[r].Close())
			require.ErrorIs(t, group[r].Barrier(bg), ccl.ErrClosed)
		}
	})
}

// A kernel whose Supports panics does not support the shape. If Supports ends its goroutine, no call
// was made, and the group lives on.
func TestSupportsDoesNotReturn(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2} {
			panics := &ccl.Kernel{Run: rightReduce, Supports: func(ccl.Shape) error { panic("do not ask") }}
			exits := &ccl.Kernel{Run: rightReduce, Supports: func(ccl.Shape) error { runtime.Goexit(); return nil }}
			group := join(t, connect, settings(t, n, patient, map[string]*ccl.Kernel{"panics": panics}))
			for r, err := range each(n, func(r int) error { return sum(group[r], 100, ccl.WithAlgorithm("panics")) }) {
				require.ErrorIs(t, err, ccl.ErrNotImplemented, "rank %d", r)
				broken, ok := errors.AsType[*ccl.KernelPanicError](err)
				require.True(t, ok, "got %v", err)
				require.Equal(t, "do not ask", broken.Value)
			}
			allSum(t, group, 100)
			group = join(t, connect, settings(t, n, patient, map[string]*ccl.Kernel{"exits": exits}))
			each(n, func(r int) error { return sum(group[r], 100, ccl.WithAlgorithm("exits")) })
			allSum(t, group, 100)
		}
	})
}

// Supports gets a complete Shape. A call of a shape that it rejects is rejected before any data
// moves.
func TestSupports(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		picky := &ccl.Kernel{Run: rightReduce, Supports: func(s ccl.Shape) error {
			want := ccl.Shape{
				Collective: ccl.CollAllReduce, Ranks: 2, Nodes: 1, Bytes: s.Total, Total: s.Total,
				DType: ccl.Float32, Op: ccl.Sum, Topology: s.Topology,
			}
			if s != want || s.Topology.Count() != 2 {
				return fmt.Errorf("the shape is %+v", s)
			}
			if s.Bytes > 400 {
				return errors.New("too long")
			}
			return nil
		}}
		group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"picky": picky}))
		for _, err := range each(2, func(r int) error { return sum(group[r], 101, ccl.WithAlgorithm("picky")) }) {
			require.ErrorIs(t, err, ccl.ErrNotImplemented)
			require.ErrorContains(t, err, "too long")
		}
		allSum(t, group, 100, ccl.WithAlgorithm("picky"))
		allSum(t, group, 101)
	})
}

// The options of a call hold for that call only.
func TestCallOptions(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		ran := make(chan string, 4)
		named := func(name string) *ccl.Kernel {
			return &ccl.Kernel{Run: func(c *ccl.Call) error {
				ran <- name
				return rightReduce(c)
			}}
		}
		group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"one": named("one"), "two": named("two")}))
		for _, name := range []string{"one", "two", "one"} {
			allSum(t, group, 100, ccl.WithAlgorithm(name))
			require.Equal(t, name, <-ran)
			require.Equal(t, name, <-ran)
		}
		allSum(t, group, 100)
		require.Empty(t, ran)
		allSum(t, group, 100, ccl.WithAlgorithm("one"), ccl.WithTimeout(time.Minute), ccl.WithAlgorithm("two"))
		require.Equal(t, "two", <-ran) // the last one counts
	})
}

// Scratch memory has the requested length, is aligned and belongs to one rank. A call like one
// made before does not allocate it again.
func TestScratch(t *testing.T) {
	exchange := &ccl.Kernel{Run: func(c *ccl.Call) error {
		theirs := c.Scratch(c.Out().Len())
		if theirs.Len() != c.Out().Len() || len(theirs.Bytes()) != 8*theirs.Len() {
			return fmt.Errorf("%d elements in %d bytes", theirs.Len(), len(theirs.Bytes()))
		}
		if err := c.SendRecv(1-c.Rank(), c.In(), 1-c.Rank(), theirs); err != nil {
			return err
		}
		for i := range c.Out().Bytes() { // both sum in rank order: x0 + x1
			if c.Rank() == 0 {
				c.Out().Bytes()[i] = c.In().Bytes()[i] + theirs.Bytes()[i]
			} else {
				c.Out().Bytes()[i] = theirs.Bytes()[i] + c.In().Bytes()[i]
			}
		}
		return nil
	}}
	everyWorld(t, func(t *testing.T, connect connector) {
		g := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"exchange": exchange}))
		for _, n := range []int{1, 100, 7, 8, 1000, 3} {
			errs := each(2, func(r int) error {
				x := make([]int64, n)
				for i := range x {
					x[i] = int64(i % 60)
				}
				if err := ccl.AllReduce(bg, g[r], x, x, ccl.Sum, ccl.WithAlgorithm("exchange")); err != nil {
					return err
				}
				for i, got := range x {
					if got != int64(i%60*2) {
						return fmt.Errorf("element %d of %d is %d", i, n, got)
					}
				}
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

// LastChoice returns the kernel that ran the last call.
func TestLastChoice(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		require.NoError(t, errors.Join(each(2, func(r int) error {
			if got := g[r].LastChoice(); got.Kernel != nil {
				return fmt.Errorf("before the first call: %+v", got)
			}
			for _, entry := range []string{"ring", "direct"} {
				if err := sum(g[r], 10, ccl.WithAlgorithm(entry)); err != nil {
					return err
				}
				if got := g[r].LastChoice(); got.Entry != entry || got.Why != "option" || got.Kernel != got.Algorithm.Kernels[ccl.CollAllReduce] {
					return fmt.Errorf("after a call by %s: %+v", entry, got)
				}
			}
			if err := g[r].Barrier(bg); err != nil {
				return err
			}
			if got := g[r].LastChoice(); got.Kernel != nil {
				return fmt.Errorf("after a barrier: %+v", got)
			}
			return nil
		})...))
	})
	alone := group(t, func(int) ([]transport.Endpoint, error) { return local.New(1), nil }, 1)
	require.NoError(t, sum(alone[0], 3))
	require.Equal(t, ccl.Choice{}, alone[0].LastChoice())
}
