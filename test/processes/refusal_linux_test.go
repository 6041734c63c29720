package processes

import (
	"errors"
	"strings"
	"testing"

	"github.com/goccl/goccl/dist"
)

// Ranks that are processes hear why another rank refused a call: all get the same text.
func TestReasonOfRefusal(t *testing.T) {
	j := start(t, 3, part{Config: yamlFor(3), Rounds: 1, Timeout: patience / 2, Scene: "refusal"}, nil)
	const want = "rejected on rank 1 (ccl: reduce_scatter: input has 300 elements, want 303)"
	var first string
	for i, r := range j.ranks {
		got := r.sound()
		if i == 0 {
			first = got.Text
		}
		if got.Err != "" || got.Text != first || !strings.Contains(got.Text, want) {
			t.Errorf("rank %d: %s\nreturns %q\nrank 0 returns %q\nwant %q", r.number, got.Err, got.Text, first, want)
		}
	}
	j.leavesNothing()
}

// refusal makes a call that rank 1 refuses and the others accept.
func (p *part) refusal(_ func(string), r *result) error {
	rank, err := dist.GetRank()
	if err != nil {
		return err
	}
	g, err := dist.NewGroup([]int{0, 1, 2})
	if err != nil {
		return err
	}
	in, out := make([]float32, 303), make([]float32, 101)
	if rank == 1 {
		in = in[:300]
	}
	err = dist.ReduceScatter(out, in, dist.Sum, dist.WithGroup(g))
	if rank == 1 {
		if _, ok := errors.AsType[*dist.InvalidBufferSizeError](err); !ok {
			return err
		}
		err = dist.Barrier(dist.WithGroup(g))
	}
	if m, ok := errors.AsType[*dist.MismatchError](err); ok {
		r.Text = m.Error()
	}
	return nil
}
