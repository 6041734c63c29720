package ccl_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// Memory that a call writes belongs to one rank. If two ranks pass the same slice, all ranks get a
// *MismatchError, for every length and algorithm, and the slice is unchanged.
func TestOneSliceOnTwoRanks(t *testing.T) {
	const ranks = 3
	type memory struct{ shared, own []int32 }
	type call func(c *ccl.Communicator, m memory, opts ...ccl.CallOption) error
	shares := func(c *ccl.Communicator, m memory) []int32 { // what a rank brings in place
		if c.Rank() == 1 {
			return m.own
		}
		return m.shared
	}
	for _, x := range []struct {
		name string
		do   call
	}{
		{"all_reduce in place", func(c *ccl.Communicator, m memory, opts ...ccl.CallOption) error {
			t := shares(c, m)
			return ccl.AllReduce(bg, c, t, t, ccl.Sum, opts...)
		}},
		{"outputs that overlap in part", func(c *ccl.Communicator, m memory, opts ...ccl.CallOption) error {
			n, t := len(m.own)/2, shares(c, m)
			send := make([]int32, n+1)
			if c.Rank() == 0 {
				return ccl.AllReduce(bg, c, send, t[:n+1], ccl.Sum, opts...)
			}
			return ccl.AllReduce(bg, c, send, t[n-1:], ccl.Sum, opts...)
		}},
		{"broadcast", func(c *ccl.Communicator, m memory, opts ...ccl.CallOption) error {
			return ccl.Broadcast(bg, c, shares(c, m), 2, opts...)
		}},
		{"all_reduce_coalesced", func(c *ccl.Communicator, m memory, opts ...ccl.CallOption) error {
			n, t := len(m.own)/2, shares(c, m)
			return ccl.AllReduceCoalesced(bg, c, [][]int32{nil, t[:n], t[n:]}, ccl.Sum, opts...)
		}},
		{"queued", func(c *ccl.Communicator, m memory, opts ...ccl.CallOption) error {
			t := shares(c, m)
			return started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, c, t, t, ccl.Sum, append(opts, async)...) }).Wait(bg)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			everyWorld(t, func(t *testing.T, connect connector) {
				for _, n := range []int{4, 12, 100, 30000} {
					for _, algorithm := range []string{"direct", "ring"} {
						t.Run(fmt.Sprintf("%s/%d", algorithm, n), func(t *testing.T) {
							if algorithm == "ring" && x.name == "broadcast" {
								t.Skip("ring has no broadcast")
							}
							group := group(t, connect, ranks)
							allSum(t, group, 5)
							m := make([]memory, ranks)
							shared := slices.Repeat([]int32{7}, n)
							for r := range m {
								m[r] = memory{shared, slices.Repeat([]int32{8}, n)}
							}
							errs := each(ranks, func(r int) error { return x.do(group[r], m[r], ccl.WithAlgorithm(algorithm)) })
							for r, err := range errs {
								var mismatch *ccl.MismatchError
								require.ErrorAs(t, err, &mismatch)
								require.Equal(t, &ccl.MismatchError{Field: "buffers", Values: []ccl.MismatchValue{
									{Value: "the same memory", Ranks: []int{0, 2}}, {Value: "memory of its own", Ranks: []int{1}},
								}}, mismatch)
								require.ErrorContains(t, err, "ranks disagree on buffers: the same memory on ranks 0, 2; memory of its own on rank 1; a buffer that a call writes must belong to one rank alone")
								require.Equal(t, slices.Repeat([]int32{8}, n), m[r].own)
							}
							require.Equal(t, slices.Repeat([]int32{7}, n), shared)
						})
					}
				}
			})
		})
	}
}

// One rank's output is another rank's input, in calls that read the input after they have started.
func TestOutputThatAnotherRankReads(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		group := group(t, connect, 2)
		const n = 30000
		x, y := make([]int32, n), make([]int32, n)
		errs := each(2, func(r int) error {
			if r == 0 {
				return ccl.AllReduce(bg, group[r], y, x, ccl.Sum)
			}
			return ccl.AllReduce(bg, group[r], x, make([]int32, n), ccl.Sum)
		})
		for _, err := range errs {
			require.ErrorContains(t, err, "ranks disagree on buffers: the same memory on ranks 0, 1;")
		}
	})
}

// Ranks may share memory that no call writes, pass empty slices, and pass disjoint parts of one
// slice.
func TestMemoryThatMayBeShared(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		group := group(t, connect, 3)
		for _, n := range []int{3, 300, 30000} {
			input := slices.Repeat([]int32{7}, 3*n)
			outputs := make([]int32, 3*n)
			for range 3 { // what was compared once is known
				errs := each(3, func(r int) error {
					c, own := group[r], outputs[r*n:(r+1)*n]
					if err := ccl.AllReduce(bg, c, input[:n], own, ccl.Sum); err != nil {
						return err
					}
					if err := ccl.ReduceScatter(bg, c, input, own, ccl.Sum); err != nil {
						return err
					}
					var root []int32
					if r == 1 {
						root = own
					}
					if err := ccl.Reduce(bg, c, input[:n], root, ccl.Sum, 1); err != nil {
						return err
					}
					if err := ccl.AllGather(bg, c, input[:0], outputs[:0]); err != nil {
						return err
					}
					return ccl.AllGatherV(bg, c, input[:0], outputs[n:n], []int{0, 0, 0}, nil)
				})
				require.Equal(t, make([]error, 3), errs)
				require.Equal(t, slices.Repeat([]int32{21}, 3*n), outputs)
			}
		}
	})
}

// lateAfterEnter is an endpoint whose rank, once it has entered a call, does nothing until goOn is
// closed.
type lateAfterEnter struct {
	transport.Endpoint
	goOn <-chan struct{}
}

func (ep *lateAfterEnter) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.Endpoint.Enter(e)
	if ep.goOn != nil {
		<-ep.goOn
	}
	return role, err
}

// Every rank, including its own, uses a short input as it was when its rank entered the call. If it
// is another rank's output, that rank may already have written it and returned.
func TestShortInputThatAnotherRankWrites(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 12} {
			late := new(lateAfterEnter)
			g := group(t, func(ranks int) ([]transport.Endpoint, error) {
				eps, err := connect(ranks)
				late.Endpoint, eps[1] = eps[1], late
				return eps, err
			}, 2)
			allSum(t, g, n)
			goOn := make(chan struct{})
			late.goOn = goOn
			x, y := slices.Repeat([]int32{1}, n), make([]int32, n)
			errs := each(2, func(r int) error {
				if r == 0 {
					defer close(goOn)
					return ccl.AllReduce(bg, g[r], x, x, ccl.Sum)
				}
				return ccl.AllReduce(bg, g[r], x, y, ccl.Sum)
			})
			if errs[1] != nil { // it was not copied
				require.ErrorContains(t, errs[0], "ranks disagree on buffers")
				require.ErrorContains(t, errs[1], "ranks disagree on buffers")
				continue
			}
			require.Equal(t, make([]error, 2), errs)
			require.Equal(t, slices.Repeat([]int32{2}, n), x)
			require.Equal(t, slices.Repeat([]int32{2}, n), y)
		}
	})
}

// A longer input is an error, also if it travels with the synchronisation.
func TestInputThatAnotherRankWrites(t *testing.T) {
	for _, waiting := range []local.Waiting{local.Poll, local.Park} {
		for _, n := range []int{13, 100, 100_000} {
			g := group(t, func(ranks int) ([]transport.Endpoint, error) { return local.NewWaiting(ranks, waiting), nil }, 2)
			x, y := make([]int32, n), make([]int32, n)
			for _, err := range each(2, func(r int) error {
				return ccl.AllReduce(bg, g[r], x, [][]int32{x, y}[r], ccl.Sum)
			}) {
				require.ErrorContains(t, err, "ranks disagree on buffers")
			}
		}
	}
}
