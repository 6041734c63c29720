package dist_test

import (
	"context"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// element is rank r's element i of a buffer; no two are the same.
func element(r, i int) int64 { return int64(1000*r + i + 1) }

// elements is rank r's buffer of n elements.
func elements(r, n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = element(r, i)
	}
	return s
}

// sums returns n sums over ranks 0 to last of the ranks' elements, from element `from` on.
func sums(last, from, n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		for r := range last + 1 {
			s[i] += element(r, from+i)
		}
	}
	return s
}

// counts of blocks of different lengths, one of them empty: 2, 0, 1, 2, ...
func unlike(ranks int) (counts []int, total int) {
	for r := range ranks {
		n := (r + 2) % 3
		if r == 1 {
			n = 0
		}
		counts = append(counts, n)
		total += n
	}
	return counts, total
}

// start returns the offset of block r.
func start(counts []int, r int) int {
	at := 0
	for _, n := range counts[:r] {
		at += n
	}
	return at
}

type gradient float32 // named types are elements too

func TestInPlace(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		sum := ranks * (ranks + 1) / 2
		err := spawn(t, initialised(func(ctx context.Context, rank int) error {
			mine := int64(rank + 1)
			product := int64(1)
			for r := range ranks {
				product *= int64(r + 1)
			}
			for _, c := range []struct {
				op   dist.ReduceOp
				want int64
			}{{dist.Sum, int64(sum)}, {dist.Avg, int64(sum / ranks)}, {dist.Product, product}, {dist.Min, 1}, {dist.Max, int64(ranks)}} {
				tensor := []int64{mine, -7}
				if err := dist.AllReduce(tensor, c.op); err != nil {
					return err
				}
				assert.Equal(t, c.want, tensor[0], "%v of %d ranks", c.op, ranks)
			}
			grads := []gradient{gradient(mine)}
			if err := dist.AllReduce(grads, dist.Sum); err != nil {
				return err
			}
			assert.Equal(t, []gradient{gradient(sum)}, grads)

			for root := range ranks {
				tensor := []uint8{uint8(rank), uint8(rank + 1)}
				if err := dist.Broadcast(tensor, root); err != nil {
					return err
				}
				assert.Equal(t, []uint8{uint8(root), uint8(root + 1)}, tensor)
			}

			var counts []int
			var input, want []float64
			for r := range ranks {
				counts = append(counts, r)
				for i := range r {
					want = append(want, float64(100*r+i))
				}
			}
			for i := range rank {
				input = append(input, float64(100*rank+i))
			}
			output := make([]float64, len(want))
			if err := dist.AllGatherV(output, input, counts); err != nil {
				return err
			}
			assert.Equal(t, append([]float64{}, want...), output)
			return dist.Barrier()
		}), dist.WithRanks(ranks))
		require.NoError(t, err)
	}
}

// Every function passes its arguments on correctly, with separate buffers and, where that
// is allowed, in place; every rank is the root once.
func TestReductions(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		err := spawn(t, initialised(func(ctx context.Context, rank int) error {
			for dst := range ranks {
				tensor, want := elements(rank, 3), elements(rank, 3)
				if rank == dst {
					want = sums(ranks-1, 0, 3)
				}
				if err := dist.Reduce(tensor, dst, dist.Sum); err != nil {
					return err
				}
				assert.Equal(t, want, tensor, "reduce to %d", dst)
			}

			input, output := elements(rank, 2*ranks), make([]int64, 2)
			if err := dist.ReduceScatter(output, input, dist.Sum); err != nil {
				return err
			}
			assert.Equal(t, sums(ranks-1, 2*rank, 2), output)
			assert.Equal(t, elements(rank, 2*ranks), input, "inputs stay as they are")
			if err := dist.ReduceScatter(input[2*rank:2*rank+2], input, dist.Sum); err != nil {
				return err
			}
			want := elements(rank, 2*ranks)
			copy(want[2*rank:], output)
			assert.Equal(t, want, input, "in place")

			counts, total := unlike(ranks)
			output = make([]int64, counts[rank])
			if err := dist.ReduceScatterV(output, elements(rank, total), dist.Sum, counts); err != nil {
				return err
			}
			assert.Equal(t, sums(ranks-1, start(counts, rank), counts[rank]), output)

			output = make([]int64, 3)
			if err := dist.Scan(output, elements(rank, 3), dist.Sum); err != nil {
				return err
			}
			assert.Equal(t, sums(rank, 0, 3), output)
			tensor := elements(rank, 3)
			if err := dist.ExScan(tensor, tensor, dist.Sum); err != nil {
				return err
			}
			if rank > 0 {
				assert.Equal(t, sums(rank-1, 0, 3), tensor)
			} else {
				assert.Equal(t, elements(0, 3), tensor, "there is nothing for rank 0")
			}
			return nil
		}), dist.WithRanks(ranks))
		require.NoError(t, err)
	}
}

func TestGathers(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		counts, total := unlike(ranks)
		var even, uneven []int64 // the inputs of all ranks
		for r := range ranks {
			even = append(even, elements(r, 2)...)
			uneven = append(uneven, elements(r, counts[r])...)
		}
		err := spawn(t, initialised(func(ctx context.Context, rank int) error {
			output := make([]int64, 2*ranks)
			if err := dist.AllGather(output, elements(rank, 2)); err != nil {
				return err
			}
			assert.Equal(t, even, output)
			output = make([]int64, 2*ranks)
			mine := output[2*rank : 2*rank+2]
			copy(mine, elements(rank, 2))
			if err := dist.AllGather(output, mine); err != nil {
				return err
			}
			assert.Equal(t, even, output, "in place")

			for root := range ranks {
				var output, input []int64
				var known []int
				if rank == root {
					output = make([]int64, 2*ranks)
				}
				if err := dist.Gather(output, elements(rank, 2), root); err != nil {
					return err
				}
				if rank == root {
					assert.Equal(t, even, output)
				}
				if rank == root {
					output, known = make([]int64, total), counts
				}
				if err := dist.GatherV(output, elements(rank, counts[rank]), known, root); err != nil {
					return err
				}
				if rank == root {
					assert.Equal(t, uneven, output)
					input = elements(root, 2*ranks)
				}
				output = make([]int64, 2)
				if err := dist.Scatter(output, input, root); err != nil {
					return err
				}
				assert.Equal(t, elements(root, 2*ranks)[2*rank:2*rank+2], output)
				if rank == root {
					input = elements(root, total)
				}
				output = make([]int64, counts[rank])
				if err := dist.ScatterV(output, input, known, root); err != nil {
					return err
				}
				at := start(counts, rank)
				assert.Equal(t, elements(root, total)[at:at+counts[rank]], output)
			}
			return nil
		}), dist.WithRanks(ranks))
		require.NoError(t, err)
	}
}

func TestAllToAll(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5} {
		sent := func(from, to int) int { return (from + 2*to) % 3 }
		err := spawn(t, initialised(func(ctx context.Context, rank int) error {
			var want []int64
			for r := range ranks {
				want = append(want, elements(r, 2*ranks)[2*rank:2*rank+2]...)
			}
			output := make([]int64, 2*ranks)
			if err := dist.AllToAll(output, elements(rank, 2*ranks)); err != nil {
				return err
			}
			assert.Equal(t, want, output)

			row := func(from int) (counts []int, total int) {
				for to := range ranks {
					counts = append(counts, sent(from, to))
					total += sent(from, to)
				}
				return counts, total
			}
			mine, total := row(rank)
			input := elements(rank, total)
			want = []int64{}
			var expected []int
			for from := range ranks {
				theirs, n := row(from)
				at := start(theirs, rank)
				want = append(want, elements(from, n)[at:at+theirs[rank]]...)
				expected = append(expected, theirs[rank])
			}
			output = make([]int64, len(want))
			if err := dist.AllToAllV(output, input, expected, mine); err != nil {
				return err
			}
			assert.Equal(t, want, output)
			return nil
		}), dist.WithRanks(ranks))
		require.NoError(t, err)
	}
}

// Halves, complex numbers, bits, a factor and logic.
func TestElementsAndOps(t *testing.T) {
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		halves := []half.BFloat16{half.NewBFloat16(float32(rank) + 0.5)}
		numbers := []complex64{complex(float32(rank), 1)}
		bits := []uint8{1 << rank, 7}
		scaled := []float32{float32(rank)}
		all, anyRank, odd := []bool{true, rank != 1}, []bool{false, rank == 1}, []bool{true, rank == 2}
		logical := []int32{int32(2 << rank), int32(rank)}
		for _, err := range []error{
			dist.AllReduce(halves, dist.Sum),
			dist.AllReduce(numbers, dist.Sum),
			dist.AllReduce(bits, dist.BXor),
			dist.AllReduce(scaled, dist.PremulSum(0.5)),
			dist.AllReduce(all, dist.LAnd),
			dist.AllReduce(anyRank, dist.LOr),
			dist.AllReduce(odd, dist.LXor),
			dist.AllReduce(logical, dist.LAnd),
		} {
			if err != nil {
				return err
			}
		}
		assert.Equal(t, []half.BFloat16{half.NewBFloat16(4.5)}, halves)
		assert.Equal(t, []complex64{complex(3, 3)}, numbers)
		assert.Equal(t, []uint8{7, 7}, bits)
		assert.Equal(t, []float32{1.5}, scaled)
		assert.Equal(t, []bool{true, false}, all)
		assert.Equal(t, []bool{false, true}, anyRank)
		assert.Equal(t, []bool{true, true}, odd)
		assert.Equal(t, []int32{1, 0}, logical)
		return nil
	}, dist.WithAlgorithm("direct")), dist.WithRanks(3))
	require.NoError(t, err)
}

// A monitored barrier names all missing ranks, within its own limit.
func TestMonitoredBarrier(t *testing.T) {
	late := make(chan struct{})
	err := spawn(t, initialised(func(ctx context.Context, rank int) error {
		if err := dist.MonitoredBarrier(0); err != nil { // the configured limit
			return err
		}
		if rank > 0 {
			<-late
			return nil
		}
		defer close(late)
		err := dist.MonitoredBarrier(30*time.Millisecond, dist.WithCallTimeout(-1))
		var timeout *dist.TimeoutError
		if assert.ErrorAs(t, err, &timeout) {
			assert.Equal(t, []int{1, 2}, timeout.Missing)
		}
		return nil
	}), dist.WithRanks(3))
	require.NoError(t, err)
}
