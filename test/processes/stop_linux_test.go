package processes

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var stops = flag.Int("stops", 3, "number of jobs of which one rank is stopped")

// stopped starts a job and stops one rank at a random moment after it has started a call.
func stopped(t *testing.T, random *rand.Rand, ranks int, p part) (j *job, victim int) {
	victim = random.IntN(ranks)
	point := p.Calls[random.IntN(len(p.Calls))].point()
	t.Logf("rank %d of %d at %s", victim, ranks, point)
	j = start(t, ranks, p, func(rank int, p *part) { p.Talks = rank == victim })
	j.ranks[victim].await(point, 1)
	time.Sleep(somewhat(random, 4*time.Millisecond))
	j.ranks[victim].signal(syscall.SIGSTOP)
	return j, victim
}

// If a rank is stopped for longer than the timeout, all others name it, also in their next calls.
func TestStoppedForLong(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(*seed, 1))
	const timeout = time.Second
	for i := range *stops {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ranks := []int{2, 4, 8}[i%3]
			// It is stopped before it leaves the group.
			j, victim := stopped(t, random, ranks, part{Config: yamlFor(ranks), Calls: calls(ranks), Repeat: 1000, Timeout: timeout})
			began := time.Now()
			j.others(victim, func(r *rank) {
				got := r.sound()
				if got.Late == nil || !slices.Contains(slices.Concat(got.Late.Missing, got.Late.Behind), victim) {
					t.Errorf("rank %d at %s: %s; want that rank %d is late", r.number, got.Point, cmp.Or(got.Err, "no error"), victim)
				}
				if !strings.Contains(got.Again, got.Err[strings.LastIndex(got.Err, "timed out"):]) {
					t.Errorf("rank %d: the next call returns %q after %q", r.number, got.Again, got.Err)
				}
				share := 100 * got.CPU.Seconds() / got.Elapsed.Seconds()
				t.Logf("rank %d: after %v, with %.1f %% of a processor: %s", r.number, got.at.Sub(began), share, got.Err)
				if share > 25 {
					t.Errorf("rank %d does not sleep while it waits: %v of processor time in %v", r.number, got.CPU, got.Elapsed)
				}
			})
			v := j.ranks[victim]
			if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.pid())); err != nil || !strings.Contains(string(stat), ") T ") {
				t.Errorf("rank %d has not stayed stopped: %s (error: %v)", victim, stat, err)
			}
			v.signal(syscall.SIGCONT)
			if got := v.sound(); got.Late == nil {
				t.Errorf("rank %d, which was stopped, at %s: %s; want a timeout", victim, got.Point, cmp.Or(got.Err, "no error"))
			}
			j.leavesNothing()
		})
	}
}

// No rank notices that another is stopped for less than that.
func TestStoppedForShort(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(*seed, 2))
	for i := range *stops {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ranks := []int{2, 4, 8}[i%3]
			j, victim := stopped(t, random, ranks, part{Config: yamlFor(ranks), Rounds: 2, Calls: calls(ranks), Timeout: patience / 2})
			time.Sleep(somewhat(random, 400*time.Millisecond))
			j.ranks[victim].signal(syscall.SIGCONT)
			for _, r := range j.ranks {
				if got := r.sound(); got.Err != "" || got.Rounds != 2 {
					t.Errorf("rank %d at %s: %s", r.number, got.Point, got.Err)
				}
			}
			j.leavesNothing()
		})
	}
}
