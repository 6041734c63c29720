package processes

import (
	"errors"
	"fmt"
	"testing"

	"github.com/goccl/goccl/dist"
)

// The errors of ranks that are processes name an operation that another process has made, and lists
// of which the fingerprints hold only a hash; all ranks get the same text.
func TestHashesAreExplained(t *testing.T) {
	j := start(t, 3, part{Config: yamlFor(3), Rounds: 1, Timeout: patience / 2, Scene: "factors"}, nil)
	for _, r := range j.ranks {
		want := "ranks disagree on op: premul_sum(2) on rank 0; premul_sum(3) on rank 1; premul_sum(4) on rank 2\n" +
			"ranks disagree on ranks: [0] on rank 0; [0 1] on rank 1; [0 2] on rank 2\n"
		if got := r.sound(); got.Err != "" || got.Text != want {
			t.Errorf("rank %d: %s\nreturns %q\nwant %q", r.number, got.Err, got.Text, want)
		}
	}
	j.leavesNothing()
}

// factors makes two calls of which each fails a group.
func (p *part) factors(_ func(string), r *result) error {
	rank, err := dist.GetRank()
	if err != nil {
		return err
	}
	g, err := dist.NewGroup([]int{0, 1, 2})
	if err != nil {
		return err
	}
	x := make([]float32, 5000)
	say := func(err error) {
		if m, ok := errors.AsType[*dist.MismatchError](err); ok {
			err = m
		}
		r.Text += fmt.Sprintln(err)
	}
	say(dist.AllReduce(x, dist.PremulSum(float64(2+rank)), dist.WithGroup(g)))
	ranks := []int{0}
	if rank > 0 {
		ranks = append(ranks, rank)
	}
	_, err = dist.NewGroup(ranks)
	say(err)
	return nil
}
