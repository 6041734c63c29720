package processes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/dist"
)

// If a rank is stopped in a ring of messages, all others blame it, although all except one wait
// for a rank that waits itself.
func TestStoppedInARing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(*seed, 5))
	defer func() { t.Logf("seed %d", *seed) }()
	for i := range *stops {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			ranks := []int{3, 4, 6}[i%3]
			victim := random.IntN(ranks)
			p := part{Config: yamlFor(ranks), Timeout: patience / 2, Scene: "ring", Seed: random.Uint64(), Victim: victim, Talks: true}
			j := start(t, ranks, p, nil)
			v := j.ranks[victim]
			v.await("ring", 1+random.IntN(10))
			time.Sleep(somewhat(random, 4*time.Millisecond))
			v.signal(syscall.SIGSTOP)
			j.others(victim, func(r *rank) { r.await("late", 1) })
			j.others(victim, func(r *rank) { // none leaves before all have given up
				if _, err := r.in.Write([]byte("\n")); err != nil {
					t.Error(err)
				}
				if got := r.sound(); got.Late == nil || !slices.Equal(slices.Concat(got.Late.Missing, got.Late.Behind), []int{victim}) {
					t.Errorf("rank %d: %q; want that rank %d is late", r.number, got.Err, victim)
				}
			})
			v.signal(syscall.SIGKILL)
			_ = v.report()
			j.leavesNothing()
		})
	}
}

// ring sends to the next rank and receives from the one before, until that fails, and
// leaves when it is told to.
func (p *part) ring(at func(string), _ *result) error {
	rank, err1 := dist.GetRank()
	size, err2 := dist.GetWorldSize()
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%w, %w", err1, err2)
	}
	random := rand.New(rand.NewPCG(p.Seed, 0)) // the same lengths on all ranks
	next, before := (rank+1)%size, (rank+size-1)%size
	for {
		n := 1 + random.IntN(100)
		if random.IntN(8) == 0 {
			n = 1 << 18 // more than all slots between two ranks hold
		}
		at("ring")
		if _, err := dist.SendRecv(make([]float32, n), before, make([]float32, n), next, 0, dist.WithCallTimeout(time.Second)); err != nil {
			at("late")
			if _, failed := os.Stdin.Read(make([]byte, 1)); failed != nil {
				panic(failed)
			}
			return err
		}
	}
}
