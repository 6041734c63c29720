package processes

import (
	"fmt"
	"strings"
	"testing"
)

// A rank that cannot join the group because of its own mistake tells the others why. Nothing of
// the attempt remains on any rank.
func TestMistakeAtInit(t *testing.T) {
	const ranks, wrong = 3, 1
	p := part{Config: yamlFor(ranks), Rounds: 1, Timeout: patience / 2}
	j := start(t, ranks, p, func(rank int, p *part) {
		if rank == wrong {
			p.Config = "version: 1\nalgorithms: {direct: {module: direct}}\ntopology: {kind: ring_1d, count: 7}\nrules: [{algorithm: direct}]\n"
		}
	})
	for _, r := range j.ranks {
		got := r.sound() // with no file open that was not before
		if !strings.Contains(got.Err, "count") || (r.number != wrong) != (got.AbortedBy != nil && *got.AbortedBy == wrong) {
			t.Errorf("rank %d: %q; want the mistake of rank %d", r.number, got.Err, wrong)
		}
	}
	j.leavesNothing()
}

// Ranks whose settings differ are told where each has its value from.
func TestAnotherConfiguration(t *testing.T) {
	p := part{Config: yamlFor(3), Rounds: 1, Timeout: patience / 2}
	j := start(t, 3, p, func(rank int, p *part) {
		if rank == 1 {
			p.Config += "defaults: {debug: true}\n"
		}
	})
	for _, r := range j.ranks {
		want := fmt.Sprintf("ranks disagree on defaults.debug: false on ranks 0, 2 (default); true on rank 1 (ccl.yaml:%d)", 1+strings.Count(p.Config, "\n"))
		if got := r.sound(); !strings.Contains(got.Err, want) {
			t.Errorf("rank %d: %q; want %q", r.number, got.Err, want)
		}
	}
	j.leavesNothing()
}
