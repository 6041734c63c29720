package stress

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/calls"
	"github.com/goccl/goccl/transport/local"
)

var options = Options{Ranks: 4, Events: 200, Longest: 500, Algorithms: []string{"direct", "ring", "tree"}}

// Together programs make all collectives, of all types, with all operations, by all
// algorithms.
func TestAllIsMade(t *testing.T) {
	want := []string{"send from", "recv from", "recvs of", "send_recv of", "crossing", "new_group of", "split of", "close group", "settle", "pause"}
	for _, coll := range ccl.Collectives() {
		want = append(want, coll.String()+" of")
	}
	want = append(want, "barrier in", " of tensors ", ", in the form for unequal blocks", ", in place", ", with gaps", "elements off")
	for _, d := range ccl.DTypes() {
		want = append(want, " of "+d.String())
	}
	for _, op := range append(ccl.Ops(), calls.Premul) {
		want = append(want, ", "+op.String())
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
	for _, f := range forms[1:] { // but the barrier
		t.Run(f.String(), func(t *testing.T) {
			found := 0
			for seed := range uint64(tries) {
				drawn := func(event int) *Program {
					all := &group{name: "all", members: []int{0, 1, 2}}
					d := &drawing{
						Rand: rand.New(rand.NewPCG(seed, 0)), Options: Options{Ranks: ranks, Longest: 100},
						program: &Program{all: all, parts: make([][]part, ranks)}, event: event,
					}
					d.collective(all, f)
					d.event++
					for rank := range ranks {
						d.settle(rank)
					}
					return d.program
				}
				right, wrong := drawn(1), drawn(2)
				require.NoError(t, play(t, right, right))
				if err := play(t, wrong, right); err != nil {
					require.Regexp(t, " (is|arrived as) .* instead of ", err.Error())
					require.ErrorContains(t, err, f.coll.String()+" of ")
					found++
				}
			}
			require.Greater(t, found, tries/2, "some calls are of no elements")
		})
	}
}

// play runs first on rank 0 and others on ranks 1 and 2.
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

// Each rule of departures is broken by an account that the check then finds, and a job in
// which nothing is wrong passes.
func TestDeparturesCheck(t *testing.T) {
	p := &Departures{program: &Program{}, groups: []*group{{name: "all", members: []int{0, 1}}}}
	ok := func(kind Kind, event int) Outcome {
		return Outcome{Kind: kind, Event: event, From: 0, To: 1, At: int64(event)}
	}
	failed := func(kind Kind, event int, f func(*Outcome)) Outcome {
		o := ok(kind, event)
		o.Err = "an error"
		f(&o)
		return o
	}
	lost := func(rank int) func(*Outcome) { return func(o *Outcome) { o.Lost = []int{rank} } }
	closed := func(o *Outcome) { o.Closed = true }
	aborted := func(o *Outcome) { o.By = []int{1} }
	for _, c := range []struct {
		text   string
		ranks  [2][]Outcome
		leaves Leaving // of rank 1
	}{
		{"", [2][]Outcome{{ok(Call, 1), ok(Send, 2), failed(Call, 3, lost(1))}, {ok(Call, 1), ok(Recv, 2)}}, Leaving{Close, 2, nil}},
		{"", [2][]Outcome{{ok(Call, 1)}, {failed(Call, 1, closed)}}, Leaving{Close, 0, nil}},
		{"", [2][]Outcome{{failed(Call, 1, lost(1))}, {ok(Call, 1)}}, Leaving{Close, 0, nil}},
		{"", [2][]Outcome{{failed(Call, 1, aborted)}, {}}, Leaving{Fail, 1, nil}},
		{"torn", [2][]Outcome{{failed(Call, 1, lost(1))}, {ok(Call, 1)}}, Leaving{Close, 1, nil}},
		{"torn", [2][]Outcome{{failed(Call, 1, lost(1))}, {ok(Call, 1)}}, Leaving{Return, 0, nil}},
		{"ran alone", [2][]Outcome{{ok(Call, 1)}, {}}, Leaving{Close, 0, nil}},
		{"ran alone", [2][]Outcome{{ok(Call, 1), ok(Call, 2)}, {failed(Call, 1, closed), failed(Call, 2, closed)}}, Leaving{Close, 1, nil}},
		{"dropped", [2][]Outcome{{}, {failed(Call, 1, closed)}}, Leaving{Return, 1, nil}},
		{"dropped", [2][]Outcome{{}, {failed(Send, 1, closed)}}, Leaving{Return, 1, nil}},
		{"names", [2][]Outcome{{failed(Call, 1, closed)}, {}}, Leaving{Close, 0, nil}},
		{"names", [2][]Outcome{{failed(Call, 1, lost(0))}, {}}, Leaving{Close, 0, nil}},
		{"names", [2][]Outcome{{failed(Call, 1, lost(1))}, {}}, Leaving{Close, 2, nil}},
		{"names", [2][]Outcome{{failed(Call, 1, aborted)}, {}}, Leaving{Close, 0, nil}},
		{"names", [2][]Outcome{{failed(Call, 1, func(*Outcome) {})}, {}}, Leaving{Close, 0, nil}},
		{"lost message", [2][]Outcome{{ok(Send, 1)}, {failed(Recv, 1, lost(1))}}, Leaving{Close, 1, nil}},
	} {
		accounts := []*Account{
			{Rank: 0, Outcomes: c.ranks[0], Left: []*Leaving{nil}},
			{Rank: 1, Outcomes: c.ranks[1], Left: []*Leaving{&c.leaves}},
		}
		if c.leaves.Way == Fail {
			accounts[1].Way = Fail
		}
		err := p.Check(accounts)
		if c.text == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, ": "+c.text+": ")
		}
	}
}

// A rank by itself finds a wrong result, an input that was written, a buffer that is written
// after the call, and a Close that does not count what it drops.
func TestAccountFinds(t *testing.T) {
	n := numbers[int32]{30, func(x int64) int32 { return int32(x) }}
	g := &group{name: "all", members: []int{0, 1}}
	x, want, source := []int32{1, 2}, []int32{1, 3}, 0
	c, err := ccl.New(context.Background(), local.New(1)[0])
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	a := &Account{Left: make([]*Leaving, 1)}
	a.ended(c, n.receiving(g, Outcome{}, 0, x, want, &source), nil)
	x[1] = 7
	sent := n.sending(g, Outcome{}, 0, want)
	want[0]++
	b := &started{ending: *sent}
	a.starts(c, b)
	a.ended(c, &b.ending, ccl.ErrClosed)
	a.works = nil
	a.works = append(a.works, b)
	b.at = interleave.Moment() - 1
	a.leave([]*group{g}, Close)
	a.counted()
	for _, look := range a.looks {
		look()
	}
	require.Len(t, a.Violations, 4)
	for i, text := range []string{"buffers: event 0, recv", "buffers: event 0, send", "not counted: ", "written late: "} {
		require.Contains(t, a.Violations[i], text)
	}
}

// The same seed draws the same departures everywhere; another seed draws another program.
func TestDeparturesSeed(t *testing.T) {
	lines := func(seed uint64) (all []string) {
		p := NewDepartures(seed, options, Close, Abort)
		for rank, parts := range p.program.parts {
			for _, part := range parts {
				all = append(all, fmt.Sprint(rank, part.event, part.text))
			}
			for _, l := range append(p.leaves[rank], p.ends[rank]) {
				all = append(all, fmt.Sprint(l.event, l.way, l.beside, l.delay, l.group != nil))
			}
		}
		return all
	}
	require.Equal(t, lines(7), lines(7))
	require.NotEqual(t, lines(7), lines(8))
}
