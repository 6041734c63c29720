package measure

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func operatorPlan(ranks, bytes []int) *Plan {
	return &Plan{Collectives: OperatorNames(), DTypes: []string{"float32"}, Ops: []string{"max"}, Ranks: ranks, Bytes: bytes, InPlace: []bool{true}}
}

// Both directions of every operator are measured beside their floor, and all results are correct.
func TestOperators(t *testing.T) {
	j := job(t, Auto)
	plain, paced := operatorPlan([]int{1, 2, 3, 4}, []int{1, 5000}), operatorPlan([]int{3}, []int{5000})
	paced.Consume = true
	paced.SetCompute(1000, nil, 2)
	require.NoError(t, plain.Validate())
	cases := append(plain.Cases(), paced.Cases()...)
	require.Len(t, cases, 2*len(operators)*(2*4+1))
	for _, c := range cases {
		r, err := j.Measure(t.Context(), c)
		require.NoError(t, err, "%+v", c)
		names := map[string]bool{}
		for _, row := range r.Rows {
			names[row.Library+" "+row.Entry] = true
			require.Zero(t, row.Errors, "%+v: %+v", c, row)
			if row.Entry != CoreToCore {
				require.Equal(t, 2, row.Calls, "%+v: %+v", c, row)
			}
		}
		delete(names, "yardstick core_to_core") // needs two free cores
		require.Equal(t, map[string]bool{"yardstick floor": true, "yardstick barrier": true, "goccl auto": true}, names)
		require.Equal(t, ratio(r.Algorithms()[0].P50, r.Yardstick(Floor).P50), r.Algorithms()[0].XFloor)
	}
	require.Equal(t, "op_all_sum_reduce of float32, forward, out of place, 1 rank", cases[0].Title())
}

// Every element of every result is compared, once.
func TestOperatorsCompareAll(t *testing.T) {
	for _, of := range operators {
		for ranks := range 4 {
			for rank := range ranks + 1 {
				m := mover{rank: rank, ranks: ranks + 1, sum: make([]float32, 2*period)}
				m.rows, m.cols = extents(1000, m.ranks)
				for range m.ranks {
					m.inputs = append(m.inputs, make([]float32, 2*period))
				}
				for _, made := range []move{of.forward(m), of.adjoint(m)} {
					of := fmt.Sprint(of.name, ", rank ", rank, " of ", m.ranks)
					elements := 1
					for _, extent := range made.out {
						elements *= extent
					}
					compared := make([]int, elements)
					for s := range made.want {
						for i := range s.n {
							compared[s.at+i]++
						}
					}
					for i, n := range compared {
						require.Equal(t, 1, n, "%s: element %d", of, i)
					}
				}
			}
		}
	}
}

// A power of two keeps its elements in a shape that is at most twice as wide as high, and other numbers lose few.
func TestExtents(t *testing.T) {
	for _, m := range []struct{ elements, ranks, rows, cols int }{
		{1 << 18, 2, 512, 512}, {1 << 18, 4, 512, 512}, {1 << 17, 2, 256, 512}, {1, 2, 8, 8}, {1, 1, 4, 4}, {1000, 3, 24, 39}, {24 * 39, 3, 24, 39},
	} {
		rows, cols := extents(m.elements, m.ranks)
		require.Equal(t, [2]int{m.rows, m.cols}, [2]int{rows, cols}, "%+v", m)
	}
	c := operatorPlan([]int{3}, []int{4000, 4001}).Cases()
	require.Len(t, c, 2*len(operators), "both lengths become the same one")
	require.Equal(t, 4*24*39, c[0].Bytes)
}

// Operators have one type, one algorithm and private memory.
func TestOperatorsRefuse(t *testing.T) {
	p := operatorPlan([]int{2}, []int{64})
	p.DTypes = append(p.DTypes, "int8")
	require.EqualError(t, p.Validate(), "op_all_sum_reduce is measured with float32 only")
	p = operatorPlan([]int{2}, []int{64})
	p.Collectives = []string{"op_gather"}
	require.ErrorContains(t, p.Validate(), "; barrier can be measured as well, and operators: op_all_sum_reduce, op_broadcast, ")

	j := job(t, "direct", "ring")
	require.NoError(t, j.CanMeasure("all_reduce", barrier))
	const many = "op_broadcast is measured with one algorithm, and 2 are to be compared"
	require.EqualError(t, j.CanMeasure("all_reduce", "op_broadcast"), many)
	c := Case{Collective: "op_broadcast", Op: Forward, DType: "float32", Ranks: 2, Bytes: 1 << 10}
	_, err := j.Measure(t.Context(), c)
	require.EqualError(t, err, many)
	j = job(t)
	j.Memory = []string{Private, Alloc}
	require.EqualError(t, j.CanMeasure("op_broadcast"), "op_broadcast is measured in private memory only")

	require.ErrorContains(t, c.fits(1000, nil), "op_broadcast of float32, forward, out of place, 2 ranks of 1KiB needs 0 MiB of memory")
	_, err = job(t, "grid").Measure(t.Context(), c)
	require.ErrorContains(t, err, "grid is the algorithm grid, which is for the topologies")
}
