package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
)

// boolsOf returns bytes as the bools that unsafe code may make of them.
func boolsOf(b ...byte) []bool { return unsafe.Slice((*bool)(unsafe.Pointer(&b[0])), len(b)) }

// With debug a bool of another byte than 0 and 1 is refused wherever it is an input, and only there.
func TestDebugRefusesBools(t *testing.T) {
	cfg, err := config.Parse("test", []byte("version: 1\ndefaults: {debug: true}\nalgorithms: {direct: {module: direct}}\nrules: [{algorithm: direct}]\n"))
	require.NoError(t, err)
	s, err := cfg.Resolve(config.Request{Registry: ccl.Registry{"direct": direct.Algorithm}, Ranks: 2})
	require.NoError(t, err)
	good, odd := []bool{true, false, true, false}, boolsOf(1, 0, 7, 0)
	async := func(c *ccl.Communicator, x []bool) error {
		w := new(ccl.Work)
		_ = ccl.AllReduce(bg, c, x, x, ccl.LOr, ccl.WithWork(w)) // w has the error
		return w.Wait(bg)
	}
	everyWorld(t, func(t *testing.T, connect connector) {
		for name, call := range map[string]func(c *ccl.Communicator, x []bool) error{
			"all_reduce":         func(c *ccl.Communicator, x []bool) error { return ccl.AllReduce(bg, c, x, make([]bool, 4), ccl.LAnd) },
			"all_reduce by Work": async,
			"all_reduce_coalesced": func(c *ccl.Communicator, x []bool) error {
				return ccl.AllReduceCoalesced(bg, c, [][]bool{{true}, x}, ccl.LXor)
			},
			"broadcast":  func(c *ccl.Communicator, x []bool) error { return ccl.Broadcast(bg, c, x, c.Rank()) }, // each is the root of its own
			"all_to_all": func(c *ccl.Communicator, x []bool) error { return ccl.AllToAll(bg, c, x, make([]bool, 4)) },
			"gather":     func(c *ccl.Communicator, x []bool) error { return ccl.GatherV(bg, c, x, nil, nil, nil, 1-c.Rank()) },
			"send":       func(c *ccl.Communicator, x []bool) error { return ccl.Send(bg, c, x, 1-c.Rank(), 0) },
		} {
			t.Run(name, func(t *testing.T) {
				what := map[bool]string{true: "tensor 1", false: "the input"}[name == "all_reduce_coalesced"]
				g := join(t, connect, s)
				for _, err := range each(2, func(r int) error { return call(g[r], odd) }) {
					var bad *ccl.InvalidArgumentError
					require.ErrorAs(t, err, &bad)
					require.ErrorContains(t, bad, fmt.Sprintf("element 2 of %s is a bool with the byte 7, which must be 0 or 1 (found because of defaults.debug)", what))
				}
				require.NoError(t, errors.Join(each(2, func(r int) error {
					out := boolsOf(9, 9, 9, 9) // an output is none of its business
					if r == 0 {
						copy(out, good)
					}
					return errors.Join(ccl.Broadcast(bg, g[r], out, 0), equal("the broadcast", out, good))
				})...), "the group lives on")
			})
		}
	})
}

// equal returns an error if got is not want.
func equal[T ccl.Element](what string, got, want []T) error {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}

// Bools, in calls and in messages.
func TestBools(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3, 4, 7} {
			g := group(t, connect, n)
			require.NoError(t, errors.Join(each(n, func(r int) error { return useBools(g[r], n, r) })...))
		}
	})
}

type mark bool

func useBools(c *ccl.Communicator, n, r int) error {
	isLast := r == n-1
	var errs []error
	wants := map[ccl.Op][]mark{ // of: true, false, the last rank's alone, all but the last's
		ccl.LAnd: {true, false, n == 1, false}, ccl.Min: {true, false, n == 1, false}, ccl.BAnd: {true, false, n == 1, false},
		ccl.LOr: {true, false, true, n > 1}, ccl.Max: {true, false, true, n > 1}, ccl.BOr: {true, false, true, n > 1},
		ccl.LXor: {n%2 == 1, false, true, n%2 == 0}, ccl.BXor: {n%2 == 1, false, true, n%2 == 0},
	}
	for _, op := range slices.Sorted(maps.Keys(wants)) {
		want := wants[op]
		x := []mark{true, false, mark(isLast), mark(!isLast)}
		errs = append(errs, ccl.AllReduce(bg, c, x, x, op), equal(op.String(), x, want))
	}

	long, err := ccl.Alloc[bool](bg, c, 5000)
	if err != nil {
		return err
	}
	for i := range long {
		long[i] = i%n == r
	}
	every := make([]bool, len(long))
	errs = append(errs, ccl.AllReduce(bg, c, long, every, ccl.LOr))
	for i, got := range every {
		if !got {
			errs = append(errs, fmt.Errorf("element %d is false", i))
			break
		}
	}

	from, token := []bool{false}, []bool{r%2 == 0}
	_, err = ccl.SendRecv(bg, c, token, (r+1)%n, from, (r+n-1)%n, 3)
	all := make([]bool, n)
	errs = append(errs, err, equal("the message", from, []bool{(r+n-1)%n%2 == 0}), ccl.AllGather(bg, c, token, all))
	for i, got := range all {
		errs = append(errs, equal("the all-gather", []bool{got}, []bool{i%2 == 0}))
	}
	for _, op := range []ccl.Op{ccl.Sum, ccl.Avg, ccl.Product, ccl.PremulSum(1)} {
		if err := ccl.AllReduce(bg, c, token, token, op); !errors.Is(err, ccl.ErrNotImplemented) {
			errs = append(errs, fmt.Errorf("%v of bools: %w", op, err))
		}
	}
	return errors.Join(errs...)
}

// A logical operation on integers gives 0 or 1 on every rank, on one rank and in scans too, and
// leaves its inputs.
func TestLogical(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3, 4, 7} {
			g := group(t, connect, n)
			require.NoError(t, errors.Join(each(n, func(r int) error {
				return errors.Join(useLogical[int8](bg, g[r], n, r), useLogical[uint16](bg, g[r], n, r), useLogical[int](bg, g[r], n, r), useLogical[uint64](bg, g[r], n, r))
			})...))
		}
	})
}

// useLogical makes calls of 0 on all ranks, of 1<<r, and of a number that is 0 on rank 0 alone.
func useLogical[T int8 | uint16 | int | uint64](ctx context.Context, c *ccl.Communicator, n, r int) error {
	in := []T{0, 1 << r, T(2 * r)}
	want := func(op ccl.Op, ranks int) []T {
		switch op {
		case ccl.LAnd:
			return []T{0, 1, 0}
		case ccl.LOr:
			return []T{0, 1, min(T(ranks-1), 1)}
		}
		return []T{0, T(ranks % 2), T((ranks - 1) % 2)}
	}
	var errs []error
	for _, op := range []ccl.Op{ccl.LAnd, ccl.LOr, ccl.LXor} {
		out, prefix, before := make([]T, 3), append([]T(nil), in...), []T{5, 5, 5}
		tensors := [][]T{append([]T(nil), in[:1]...), append([]T(nil), in[1:]...)}
		errs = append(errs,
			ccl.AllReduce(ctx, c, in, out, op), equal(op.String(), out, want(op, n)),
			ccl.Scan(ctx, c, prefix, prefix, op), equal(op.String()+" up to this rank", prefix, want(op, r+1)),
			ccl.ExScan(ctx, c, in, before, op),
			ccl.AllReduceCoalesced(ctx, c, tensors, op), equal(op.String()+" of tensors", append(tensors[0], tensors[1]...), want(op, n)),
			equal("the input", in, []T{0, 1 << r, T(2 * r)}))
		if r > 0 {
			errs = append(errs, equal(op.String()+" before this rank", before, want(op, r)))
		}
	}
	return errors.Join(errs...)
}
