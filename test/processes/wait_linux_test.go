package processes

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
)

var idle = flag.Duration("idle", time.Second, "how long ranks wait for one that is late")

// Ranks that wait for a late one leave the cores to others, whatever their number.
func TestWaitingIsCheap(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{2, 4, 8} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			t.Parallel()
			waitForLate(t, ranks, *idle, part{Calls: []call{{"direct", 1}}})
		})
	}
}

// So do calls and messages that were started.
func TestBegunIsCheap(t *testing.T) {
	t.Parallel()
	waitForLate(t, 3, 2**idle, part{Scene: "await"})
}

// waitForLate starts ranks that play p, and lets the last one come late.
func waitForLate(t *testing.T, ranks int, idle time.Duration, p part) {
	const most = 5 // per cent of one processor, for each rank
	late := ranks - 1
	p.Config, p.Rounds, p.Timeout = yamlFor(ranks), 1, 2*patience+idle
	j := start(t, ranks, p, func(rank int, p *part) { p.Late, p.Talks = rank == late, rank == late })
	j.ranks[late].await("joined", 1)
	time.Sleep(idle)
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
		if got.Elapsed < idle/2 || share > most {
			t.Errorf("rank %d waits for %v, with %.2f %% of a processor; want about %v, at most %d %%", r.number, got.Elapsed, share, idle, most)
		}
	}
	j.leavesNothing()
}

// await starts calls, messages to all others and receives from all, and waits for them.
func (p *part) await(_ func(string), r *result) error {
	rank, err1 := dist.GetRank()
	size, err2 := dist.GetWorldSize()
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%w, %w", err1, err2)
	}
	return r.measure(func() error {
		var started []*dist.Work
		for range 3 {
			work, err := dist.AllReduceAsync(make([]float32, 1000), dist.Sum)
			if err != nil {
				return wait(started, err)
			}
			started = append(started, work)
		}
		for other := range size {
			if other == rank {
				continue
			}
			works, err := dist.BatchIsendIrecv([]dist.P2POp{
				dist.SendOp(make([]float32, 1<<18), other, 0), // it does not fit between them
				dist.RecvOp(make([]float32, 1<<18), other, 0),
			})
			started = append(started, works...)
			if err != nil {
				return wait(started, err)
			}
		}
		return wait(started, nil)
	})
}
