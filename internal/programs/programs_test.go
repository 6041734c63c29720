package programs

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport/local"
)

var options = Options{Ranks: 4, Events: 200, Longest: 500, Algorithms: []string{"direct", "ring", "tree"}}

// Together programs make all collectives, of all types, with all operations, by all
// algorithms.
func TestAllIsMade(t *testing.T) {
	want := []string{"send from", "recv from", "recvs of", "send_recv of", "new_group of", "split of", "close group", "settle", "pause"}
	for _, coll := range append(ccl.Collectives(), ccl.CollBarrier) {
		want = append(want, coll.String()+" of")
	}
	for _, form := range []string{"all_reduce_coalesced", "reduce_scatter_v", "all_gather_v", "gather_v", "scatter_v", "all_to_all_v"} {
		want = append(want, form+" of")
	}
	for _, d := range ccl.DTypes() {
		want = append(want, " of "+d.String())
	}
	for _, op := range append(ccl.Ops(), premul) {
		want = append(want, "("+op.String()+")")
	}
	for _, name := range options.Algorithms {
		want = append(want, " by "+name)
	}
	var text strings.Builder
	for seed := range uint64(20) {
		for _, parts := range New(seed, options).parts {
			for _, p := range parts {
				text.WriteString(p.text + "\n")
			}
		}
	}
	for _, w := range want {
		require.Contains(t, text.String(), w)
	}
}

// A program is the same wherever it is drawn, and another seed is another program.
func TestSeed(t *testing.T) {
	type line struct {
		event int
		text  string
	}
	lines := func(seed uint64) (all [][]line) {
		for _, parts := range New(seed, options).parts {
			var mine []line
			for _, p := range parts {
				mine = append(mine, line{p.event, p.text})
			}
			all = append(all, mine)
		}
		return all
	}
	require.Equal(t, lines(7), lines(7))
	require.NotEqual(t, lines(7), lines(8))
}

// A wrong result is found: rank 0 brings other numbers than the others expect, and
// expects others.
func TestWrongIsFound(t *testing.T) {
	const ranks, tries = 3, 10
	n := integers[int64](60)
	for _, k := range kinds[1:] { // but the barrier
		t.Run(k.name, func(t *testing.T) {
			found := 0
			for seed := range uint64(tries) {
				drawn := func(event int) *Program {
					all := &group{name: "all", members: []int{0, 1, 2}}
					d := &drawing{
						Rand: rand.New(rand.NewPCG(seed, 0)), Options: Options{Ranks: ranks, Longest: 100},
						program: &Program{all: all, parts: make([][]part, ranks)}, event: event,
					}
					n.collective(d, all, k)
					d.event++
					for rank := range ranks {
						d.settle(rank)
					}
					return d.program
				}
				right, wrong := drawn(1), drawn(2)
				require.NoError(t, play(t, right, right))
				if err := play(t, wrong, right); err != nil {
					require.ErrorContains(t, err, " is ")
					require.ErrorContains(t, err, k.name+" of int64")
					found++
				}
			}
			require.Greater(t, found, tries/2, "some calls are of no elements")
		})
	}
}

// play runs the programs, that of rank 0 and that of the others, on three ranks.
func play(t *testing.T, first, others *Program) error {
	endpoints := local.New(3)
	errs := make([]error, len(endpoints))
	var all sync.WaitGroup
	for rank, ep := range endpoints {
		all.Go(func() {
			c, err := ccl.New(context.Background(), ep)
			if err != nil {
				errs[rank] = err
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			p := others
			if rank == 0 {
				p = first
			}
			errs[rank] = p.Run(context.Background(), c)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
