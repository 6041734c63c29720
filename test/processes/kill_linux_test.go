package processes

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/transport/shm"
)

var (
	kills = flag.Int("kills", 16, "number of jobs of which one rank is killed")
	seed  = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random choices")
)

// yamlFor returns a ccl.yaml for a number of ranks. grid needs two dimensions.
func yamlFor(ranks int) string {
	shape := "{kind: ring_1d}"
	if ranks >= 4 {
		shape = fmt.Sprintf("{kind: torus_2d, w: %d, h: 2}", ranks/2)
	}
	return "version: 1\nalgorithms: {direct: {module: direct}, ring: {module: ring}, tree: {module: tree}, grid: {module: grid}}\n" +
		"topology: " + shape + "\nrules: [{algorithm: direct}]\n"
}

// calls returns calls of every algorithm that supports this number of ranks, from a few bytes to
// several pieces of shared memory.
func calls(ranks int) (all []call) {
	for _, algorithm := range []string{"direct", "ring", "tree", "grid"} {
		if algorithm == "grid" && ranks < 4 {
			continue
		}
		for _, elements := range []int{1, 1 << 12, 1 << 18} {
			all = append(all, call{algorithm, elements})
		}
	}
	return all
}

// If a rank is killed at any moment, all others soon name it, and nothing of the job remains.
func TestKilled(t *testing.T) {
	random := rand.New(rand.NewPCG(*seed, 0))
	var took []time.Duration
	where, missed := map[string]int{}, 0
	defer func() {
		slices.Sort(took)
		if n := len(took); n > 0 {
			t.Logf("seed %d: %d jobs, of which one rank was killed at %v", *seed, *kills, where)
			t.Logf("%d survivors knew: half of them within %v of the kill, 99 %% within %v, all within %v", n, took[n/2], took[n*99/100], took[n-1])
			t.Logf("%d missed a rank that had not come", missed)
		}
	}()
	for i := range *kills {
		ranks := []int{2, 4, 8}[i%3]
		victim := random.IntN(ranks)
		p := part{Config: yamlFor(ranks), Calls: calls(ranks), Timeout: patience / 2}
		points := []string{"joined"}
		for _, c := range p.Calls {
			points = append(points, c.point())
		}
		p.Repeat = 1000 // the rank dies before it leaves the group
		point := points[random.IntN(len(points))]
		// No rank can know that another died before it joined: they wait for it.
		outside := i%8 == 7
		if outside {
			point = []string{"init", "destroy"}[i/8%2]
			p.Calls, p.Repeat, p.Timeout = p.Calls[:6], 0, 3*time.Second
		}
		t.Run(fmt.Sprintf("%d/rank %d of %d at %s", i, victim, ranks, point), func(t *testing.T) {
			j := start(t, ranks, p, func(rank int, p *part) { p.Talks = rank == victim })
			v := j.ranks[victim]
			times := 1 + random.IntN(2)
			if point == "joined" {
				times = 1 // the next time is far away
			}
			v.await(point, times)
			time.Sleep(somewhat(random, 8*time.Millisecond))
			v.signal(syscall.SIGKILL)
			killed := time.Now()
			where[point]++
			reports := make([]report, ranks)
			j.others(victim, func(r *rank) { reports[r.number] = r.sound() })
			_ = v.report()
			for r, got := range reports {
				switch {
				case r == victim:
				case got.Lost != nil && got.Lost.Rank == victim && got.Lost.PID == v.pid():
					took = append(took, got.at.Sub(killed))
					if strings.Contains(got.Again, "initialize it again") {
						t.Errorf("rank %d: the next call says %q of a dead process", r, got.Again)
					}
				case outside && got.Point == "init" && got.Late != nil && slices.Equal(got.Late.Missing, []int{victim}):
					missed++
				case outside && got.Point == "init" && got.Late != nil && slices.Equal(got.Late.Missing, []int{0}):
					missed++ // it came after rank 0 had found the death, and left
				default:
					t.Errorf("rank %d at %s after %v: %s; want that rank %d (pid %d) is lost", r, got.Point, got.at.Sub(killed), cmp.Or(got.Err, "no error"), victim, v.pid())
				}
			}
			if outside && victim == 0 && point == "init" {
				// Ranks that came after its death took its file for one of an earlier job, and
				// waited for a rank 0 that replaces it.
				if err := shm.RemoveLeftovers(j.name); err != nil {
					t.Error(err)
				}
			}
			j.leavesNothing()
		})
	}
	if n := len(took); n > 0 && took[n-1] > patience/2 {
		t.Errorf("a survivor learned it after %v", took[n-1])
	}
}
