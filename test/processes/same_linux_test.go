package processes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

// A program returns the same results whether its ranks are goroutines of one process or processes
// of a launcher.
func TestSameAsProcesses(t *testing.T) {
	for _, ranks := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			parsed, err := config.Parse("ccl.yaml", []byte(yamlFor(ranks)))
			if err != nil {
				t.Fatal(err)
			}
			want := make([]string, ranks)
			if err := dist.Spawn(func(_ context.Context, rank int) error {
				if err := dist.InitProcessGroup("ccl", dist.WithConfig(parsed)); err != nil {
					return err
				}
				text, err := mixture()
				if err != nil {
					return err
				}
				want[rank] = text
				return dist.DestroyProcessGroup()
			}, dist.WithRanks(ranks)); err != nil {
				t.Fatal(err)
			}
			j := start(t, ranks, part{Config: yamlFor(ranks), Rounds: 1, Timeout: patience / 2, Scene: "mixture"}, nil)
			for _, r := range j.ranks {
				got := r.sound()
				// Spawn's error names the rank, so that errors of its calls do not.
				got.Text = strings.ReplaceAll(got.Text, fmt.Sprintf(", rank %d: ", r.number), ": ")
				if got.Err != "" || got.Text != want[r.number] {
					t.Errorf("rank %d: %s\nreturns as a process %q\nas a goroutine    %q", r.number, got.Err, got.Text, want[r.number])
				}
			}
			j.leavesNothing()
		})
	}
}

func (p *part) mixture(_ func(string), r *result) (err error) {
	r.Text, err = mixture()
	return err
}

// mixture makes calls of many kinds and returns their results as text.
func mixture() (string, error) {
	var text strings.Builder
	rank, err1 := dist.GetRank()
	size, err2 := dist.GetWorldSize()
	pairs, err3 := dist.Split(rank%2, -rank) // backwards
	ends, err4 := dist.NewGroup([]int{size - 1, 0})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return "", err
	}
	// Sums of thirds depend on their order.
	third := make([]float32, 1000)
	for i := range third {
		third[i] = float32(rank+1) / float32(3+i%7)
	}
	var started []*dist.Work
	for _, g := range []*dist.ProcessGroup{pairs, ends} {
		if g == nil {
			continue
		}
		v := slices.Clone(third)
		work, err := dist.AllReduceAsync(v, dist.Avg, dist.WithGroup(g), dist.WithCallAlgorithm("ring"))
		if err != nil {
			return "", err
		}
		started = append(started, work)
		fmt.Fprintln(&text, "in a group of", g.Ranks(), "rank", g.Rank())
		all, err := dist.AllGatherObject(map[string]int{"rank": rank}, dist.WithGroup(g))
		if err := errors.Join(err, work.Wait(context.Background())); err != nil {
			return "", err
		}
		fmt.Fprintln(&text, v[:9], all)
	}
	next, before := (rank+1)%size, (rank+size-1)%size
	got := make([]float32, len(third))
	received, err := dist.Irecv(got, before, 1)
	if err != nil {
		return "", err
	}
	sent, err := dist.Isend(third, next, 1)
	if err != nil {
		return "", err
	}
	if err := wait(append(started, received, sent), nil); err != nil {
		return "", err
	}
	fmt.Fprintln(&text, "from", received.Source(), got[:9])
	object := struct{ Names []string }{[]string{fmt.Sprint("of rank ", rank)}}
	if err := dist.BroadcastObject(&object, size-1); err != nil {
		return "", err
	}
	fmt.Fprintln(&text, object, dist.Broadcast([]int{0}, size)) // no such rank
	switch rank {
	case 0:
		if err := dist.Send(third[:1], 1, 9); err != nil {
			return "", err
		}
	case 1:
		_, err := dist.Recv(make([]float64, 1), 0, 9)
		fmt.Fprintln(&text, err)
		if _, err := dist.Recv(third[:1], dist.AnySource, 9); err != nil {
			return "", err
		}
	}
	return text.String(), dist.Barrier()
}
