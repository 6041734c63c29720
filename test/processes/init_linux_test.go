package processes

import (
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
