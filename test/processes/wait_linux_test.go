package processes

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	least := leastShares(j.ranks[:late], idle)
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
		t.Logf("rank %d: %v of processor time in %v, at least %.2f %%", r.number, got.CPU, got.Elapsed, least[r.number])
		if got.Elapsed < idle/2 || least[r.number] > most {
			t.Errorf("rank %d waits for %v, with %.2f %% of a processor all the time; want about %v, at most %d %%", r.number, got.Elapsed, least[r.number], idle, most)
		}
	}
	j.leavesNothing()
}

// leastShares returns for each rank the share of a processor, in per cent, that it takes in the tenth
// of a time in which it takes least: others of a busy machine may make it take more, but who polls
// does so all the time.
func leastShares(ranks []*rank, of time.Duration) []float64 {
	least := slices.Repeat([]float64{100}, len(ranks))
	for range 10 {
		start, before := time.Now(), processorTimes(ranks)
		time.Sleep(of / 10)
		for i, after := range processorTimes(ranks) {
			least[i] = min(least[i], 100*(after-before[i]).Seconds()/time.Since(start).Seconds())
		}
	}
	return least
}

// processorTimes returns the processor time of each rank's threads.
func processorTimes(ranks []*rank) []time.Duration {
	times := make([]time.Duration, len(ranks))
	for i, r := range ranks {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", r.pid()))
		if err != nil || len(stats) == 0 {
			panic(fmt.Sprint("no schedstat of pid ", r.pid(), ": ", err))
		}
		for _, stat := range stats {
			text, _ := os.ReadFile(stat) // a thread may have ended
			ns, _, _ := strings.Cut(string(text), " ")
			n, _ := strconv.ParseInt(ns, 10, 64)
			times[i] += time.Duration(n)
		}
	}
	return times
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
