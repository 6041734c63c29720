package ccl_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// Calls whose blocks have different lengths, which not all ranks know.

// cell is element i of the block that rank from sends to rank to.
func cell(from, to, i int) int32 { return int32(from<<20 | to<<10 | i) }

func cells(from, to, n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = cell(from, to, i)
	}
	return x
}

func same(got, want []int32) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	return nil
}

// Only the root has counts and displacements. Gaps are not changed, and blocks may be in any
// order.
func TestGatherV(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3, 5} {
			g := group(t, connect, n)
			errs := each(n, func(r int) error {
				for root := range n {
					mine := cells(r, root, r*7%5)
					var recv []int32
					var counts, displs []int
					if r == root {
						at := 1
						for s := n - 1; s >= 0; s-- { // the last rank's first
							counts, displs = append([]int{s * 7 % 5}, counts...), append([]int{at}, displs...)
							at += s*7%5 + 1
						}
						recv = make([]int32, at)
					}
					if err := ccl.GatherV(bg, g[r], mine, recv, counts, displs, root); err != nil {
						return err
					}
					if r != root {
						continue
					}
					want := make([]int32, len(recv))
					for s := range n {
						copy(want[displs[s]:], cells(s, root, counts[s]))
					}
					if err := same(recv, want); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

func TestScatterV(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3, 5} {
			g := group(t, connect, n)
			errs := each(n, func(r int) error {
				for root := range n {
					for _, packed := range []bool{true, false} {
						var send []int32
						var counts, displs []int
						if r == root {
							for s := range n {
								counts = append(counts, s*7%5)
							}
							for s := range n { // rank s's block, from the last
								block := cells(root, s, counts[s])
								if packed {
									send = append(send, block...)
								} else {
									send = append(append(block, -1), send...)
								}
							}
							if !packed {
								displs = make([]int, n)
								for s := n - 2; s >= 0; s-- {
									displs[s] = displs[s+1] + counts[s+1] + 1
								}
							}
						}
						got := make([]int32, r*7%5)
						if err := ccl.ScatterV(bg, g[r], send, counts, displs, got, root); err != nil {
							return err
						}
						if err := same(got, cells(root, r, len(got))); err != nil {
							return fmt.Errorf("root %d, packed %v: %w", root, packed, err)
						}
					}
				}
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

func TestAllToAllV(t *testing.T) {
	length := func(from, to int) int { return (from*3 + to*5) % 4 * (from + 1) }
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3, 5} {
			g := group(t, connect, n)
			errs := each(n, func(r int) error {
				for _, gap := range []int{0, 2} {
					var send, want []int32
					var out, outAt, in, inAt []int
					for s := range n {
						out, outAt = append(out, length(r, s)), append(outAt, len(send))
						send = append(append(send, cells(r, s, length(r, s))...), make([]int32, gap)...)
						in, inAt = append(in, length(s, r)), append(inAt, len(want))
						want = append(append(want, cells(s, r, length(s, r))...), make([]int32, gap)...)
					}
					if gap == 0 {
						outAt, inAt = nil, nil
					}
					recv := make([]int32, len(want))
					if err := ccl.AllToAllV(bg, g[r], send, out, outAt, recv, in, inAt); err != nil {
						return err
					}
					if err := same(recv, want); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

// If two ranks disagree on a length, all ranks reject the call before any data moves, and the
// group lives on.
func TestLengthsThatDiffer(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		mismatch := func(call func(r int) error) []*ccl.MismatchError {
			t.Helper()
			all := make([]*ccl.MismatchError, 3)
			for r, err := range each(3, call) {
				require.ErrorAs(t, err, &all[r])
				require.Equal(t, "counts", all[r].Field)
				require.Regexp(t, `^ccl: (gather_v|scatter_v|all_to_all_v): ranks disagree on counts: .* \(call [0-9]+ at `, err.Error(), "rank %d", r)
			}
			allSum(t, g, 10)
			return all
		}
		untouched := make([]int32, 9)
		for _, m := range mismatch(func(r int) error {
			in := []int{1, 1, 1}
			if r == 1 {
				in[2] = 2
			}
			recv := make([]int32, 5)
			if r == 1 {
				recv = untouched
			}
			return ccl.AllToAllV(bg, g[r], []int32{7, 8, 9}, []int{1, 1, 1}, nil, recv, in, nil)
		}) {
			require.EqualError(t, m, "ranks disagree on counts: rank 2 sends 1 elements to rank 1 on rank 2; rank 1 expects 2 from rank 2 on rank 1")
		}
		require.Equal(t, make([]int32, 9), untouched)
		mismatch(func(r int) error {
			if r == 0 {
				return ccl.GatherV(bg, g[r], []int32{1}, untouched, []int{1, 1, 3}, nil, 0)
			}
			return ccl.GatherV(bg, g[r], []int32{2, 3}[:r], nil, nil, nil, 0)
		})
		require.Equal(t, make([]int32, 9), untouched)
		mismatch(func(r int) error {
			if r == 0 {
				return ccl.ScatterV(bg, g[r], make([]int32, 6), []int{1, 2, 3}, nil, []int32{0}, 0)
			}
			return ccl.ScatterV(bg, g[r], nil, nil, nil, make([]int32, 2), 0)
		})
	})
}

// The error of an impossible count or displacement, or of a call after Close, says what is wrong with it.
func TestTextsOfRefusals(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		x := make([]int8, 4)
		for want, call := range map[string]func(c *ccl.Communicator) error{
			"counts[1] is -1, and must not be negative": func(c *ccl.Communicator) error {
				return ccl.AllGatherV(bg, c, x[:1], x, []int{1, -1}, nil)
			},
			fmt.Sprintf("counts[1] is %d, and is more than a buffer can have", math.MaxInt): func(c *ccl.Communicator) error {
				return ccl.AllGatherV(bg, c, x[:1], x, []int{1, math.MaxInt}, nil)
			},
			"displs[0] is -2, and must not be negative": func(c *ccl.Communicator) error {
				return ccl.AllGatherV(bg, c, x[:1], x, []int{1, 1}, []int{-2, 1})
			},
		} {
			for _, err := range each(2, func(r int) error { return call(g[r]) }) {
				require.ErrorContains(t, err, "ccl: all_gather: "+want)
			}
		}
		require.NoError(t, g[0].Close())
		require.ErrorContains(t, g[0].Barrier(bg), "ccl: barrier: the communicator is closed")
		require.ErrorContains(t, ccl.Send(bg, g[0], x, 1, 0), "ccl: send: the communicator is closed")
	})
}

// Invalid arguments of calls with blocks. All ranks reject them, so the group lives on.
func TestBlocksRefused(t *testing.T) {
	var size *ccl.InvalidBufferSizeError
	var bad *ccl.InvalidArgumentError
	var root *ccl.InvalidRootError
	x := func(n int) []int32 { return make([]int32, n) }
	one := x(9)
	for _, c := range []struct {
		name string
		call func(c *ccl.Communicator) error
		want any
	}{
		{"reduce: no root", func(c *ccl.Communicator) error { return ccl.Reduce(bg, c, x(3), x(3), ccl.Sum, 3) }, &root},
		{"reduce: empty", func(c *ccl.Communicator) error { return ccl.Reduce(bg, c, nil, x(0), ccl.Sum, 0) }, &size},
		{"reduce: recv is short or not root's", func(c *ccl.Communicator) error { return ccl.Reduce(bg, c, x(3), x(2), ccl.Sum, 1) }, &size},
		{"reduce-scatter: send", func(c *ccl.Communicator) error { return ccl.ReduceScatter(bg, c, x(7), x(2), ccl.Sum) }, &size},
		{"reduce-scatter: recv elsewhere in send", func(c *ccl.Communicator) error {
			at := 2 * ((c.Rank() + 1) % 3)
			return ccl.ReduceScatter(bg, c, one[:6], one[at:at+2], ccl.Sum)
		}, &bad},
		{"reduce-scatter: counts", func(c *ccl.Communicator) error { return ccl.ReduceScatterV(bg, c, x(7), x(2), ccl.Sum, []int{2, 2}) }, &size},
		{"reduce-scatter: all empty", func(c *ccl.Communicator) error {
			return ccl.ReduceScatterV(bg, c, x(0), x(0), ccl.Sum, []int{0, 0, 0})
		}, &size},
		{"all-gather: recv", func(c *ccl.Communicator) error { return ccl.AllGather(bg, c, x(2), x(7)) }, &size},
		{"gather: recv", func(c *ccl.Communicator) error { return ccl.Gather(bg, c, x(2), x(5), 2) }, &size},
		{"scatter: send", func(c *ccl.Communicator) error { return ccl.Scatter(bg, c, x(5), x(2), 2) }, &size},
		{"all-to-all: lengths", func(c *ccl.Communicator) error { return ccl.AllToAll(bg, c, x(6), x(3)) }, &size},
		{"all-to-all: uneven", func(c *ccl.Communicator) error { return ccl.AllToAll(bg, c, x(7), x(7)) }, &bad},
		{"all-to-all: in place", func(c *ccl.Communicator) error { y := x(6); return ccl.AllToAll(bg, c, y, y) }, &bad},
		{"all-to-all: no counts", func(c *ccl.Communicator) error {
			return ccl.AllToAllV(bg, c, x(0), nil, nil, x(0), nil, nil)
		}, &size},
		{"scan: avg", func(c *ccl.Communicator) error { return ccl.Scan(bg, c, x(6), x(6), ccl.Avg) }, ccl.ErrNotImplemented},
		{"coalesced: nothing", func(c *ccl.Communicator) error {
			return ccl.AllReduceCoalesced(bg, c, [][]int32{{}, nil}, ccl.Sum)
		}, &size},
		{"coalesced: overlap", func(c *ccl.Communicator) error {
			y := x(6)
			return ccl.AllReduceCoalesced(bg, c, [][]int32{y[3:], x(2), y[:4]}, ccl.Sum)
		}, &bad},
	} {
		t.Run(c.name, func(t *testing.T) {
			everyWorld(t, func(t *testing.T, connect connector) {
				g := group(t, connect, 3)
				for _, err := range each(3, func(r int) error { return c.call(g[r]) }) {
					if sentinel, ok := c.want.(error); ok {
						require.ErrorIs(t, err, sentinel)
					} else {
						require.ErrorAs(t, err, c.want)
					}
				}
				allSum(t, g, 10)
			})
		})
	}
}

// Many tensors in one call: short ones, which travel together, and long ones, which do not.
func TestCoalesced(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3} {
			g := group(t, connect, n)
			lengths := []int{1, 0, 1000, 16 << 10, 3, 40 << 10, 7}
			errs := each(n, func(r int) error {
				for _, op := range []ccl.Op{ccl.Sum, ccl.Max, ccl.PremulSum(3)} {
					var tensors [][]int32
					for i, k := range lengths {
						tensors = append(tensors, cells(r, i, k))
					}
					if err := ccl.AllReduceCoalesced(bg, g[r], tensors, op); err != nil {
						return err
					}
					for i, k := range lengths {
						want := make([]int32, k)
						for j := range want {
							for s := range n {
								switch x := cell(s, i, j); op {
								case ccl.Max:
									want[j] = max(want[j], x)
								case ccl.Sum:
									want[j] += x
								default:
									want[j] += 3 * x
								}
							}
						}
						if !slices.Equal(tensors[i], want) {
							return fmt.Errorf("%v: tensor %d of %d elements differs", op, i, k)
						}
					}
				}
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

// If one rank passes other lengths, all learn it before any data moves, even if the sums are equal.
func TestCoalescedMismatch(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		tensors := [][][]int32{{{1, 2}, {3}}, {{1}, {2, 3}}}
		for r, err := range each(2, func(r int) error { return ccl.AllReduceCoalesced(bg, g[r], tensors[r], ccl.Sum) }) {
			var m *ccl.MismatchError
			require.ErrorAs(t, err, &m)
			require.EqualError(t, m, "ranks disagree on counts: [2 1] on rank 0; [1 2] on rank 1")
			require.Equal(t, int32(1), tensors[r][0][0])
		}
	})
}

// For long lists of lengths the error names the first difference.
func TestLongListsThatDiffer(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		for _, err := range each(2, func(r int) error {
			tensors := slices.Repeat([][]int32{make([]int32, 3)}, 1000)
			for i := range tensors {
				tensors[i] = make([]int32, 3)
			}
			tensors[700+r] = make([]int32, 4)
			return ccl.AllReduceCoalesced(bg, g[r], tensors, ccl.Sum)
		}) {
			require.ErrorContains(t, err, "all_reduce of 3001 int32 by direct, call 1 at ccl/blocks_test.go:")
			require.ErrorContains(t, err, "ranks disagree on counts: 4 at index 700 of 1000 on rank 0; 3 at index 700 of 1000 on rank 1")
		}
	})
}

// Calls that are repeated allocate nothing, also calls of several steps.
func TestSeveralStepsAllocateNothing(t *testing.T) {
	connect := func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }
	g := group(t, connect, 2)
	calls := func(times int) {
		require.NoError(t, errors.Join(each(2, func(r int) (err error) {
			c := g[r]
			x, y := make([]int32, 100), make([]int32, 200)
			tensors := [][]int32{x[:3], x[10:], y}
			counts, even := []int{40, 60}, []int{50, 50}
			var at0 []int
			recv := []int32(nil)
			if r == 0 {
				at0, recv = counts, y
			}
			for range times {
				err = errors.Join(err,
					ccl.AllReduceCoalesced(bg, c, tensors, ccl.PremulSum(3)),
					ccl.GatherV(bg, c, x[:counts[r]], recv, at0, nil, 0),
					ccl.ScatterV(bg, c, recv[:len(recv)/2], at0, nil, x[:counts[r]], 0),
					ccl.AllToAllV(bg, c, x, even, nil, y[:100], even, nil),
				)
			}
			return err
		})...))
	}
	calls(100)
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	calls(3000)
	runtime.ReadMemStats(&b)
	require.Less(t, b.Mallocs-a.Mallocs, uint64(300))
}
