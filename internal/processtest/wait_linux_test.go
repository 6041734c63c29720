package processtest

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var idle = flag.Duration("idle", time.Second, "for so long ranks wait for one that is late")

// Ranks that wait for one that is late leave the cores to others, however many they are.
func TestWaitingIsCheap(t *testing.T) {
	const most = 5 // per cent of one processor, for each rank
	for _, ranks := range []int{2, 4, 8} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			late := ranks - 1
			j := start(t, ranks, part{Config: config(ranks), Rounds: 1, Calls: []call{{"direct", 1}}, Timeout: 2*patience + *idle},
				func(rank int, p *part) { p.Late, p.Talks = rank == late, rank == late })
			j.ranks[late].await("joined", 1)
			time.Sleep(*idle)
			if _, err := j.ranks[late].in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			for _, r := range j.ranks {
				got := r.sound()
				if got.Err != "" {
					t.Errorf("rank %d: %s", r.number, got.Err)
				}
				if r.number == late {
					continue
				}
				share := 100 * got.CPU.Seconds() / got.Elapsed.Seconds()
				t.Logf("rank %d: %v of processor time in %v: %.2f %%", r.number, got.CPU, got.Elapsed, share)
				if got.Elapsed < *idle/2 || share > most {
					t.Errorf("rank %d waits for %v, with %.2f %% of a processor; want about %v, at most %d %%", r.number, got.Elapsed, share, *idle, most)
				}
			}
			j.leavesNothing()
		})
	}
}
