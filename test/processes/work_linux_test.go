package processes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

var deaths = flag.Int("deaths", 24, "number of jobs of which one rank is killed at work in groups")

// If a rank is killed while asynchronous calls, messages, objects, operators or steps of a training are
// under way, or while groups are being made, all ranks that need it soon name it. Ranks in groups without it continue, and the
// survivors continue among each other.
func TestKilledAtWork(t *testing.T) {
	random := rand.New(rand.NewPCG(*seed, 4))
	names := slices.Sorted(maps.Keys(works))
	took := map[string][]time.Duration{}
	defer func() {
		t.Logf("seed %d", *seed)
		var all []time.Duration
		for _, name := range names {
			if d := took[name]; len(d) > 0 {
				slices.Sort(d)
				t.Logf("%s: %d survivors knew: half of them within %v of the kill, all within %v", name, len(d), d[len(d)/2], d[len(d)-1])
				all = append(all, d...)
			}
		}

		// One machine that stood still for a second says nothing; half of all survivors do.
		slices.Sort(all)
		if len(all) > 0 && all[len(all)/2] > time.Second {
			t.Errorf("half of the survivors knew after %v only", all[len(all)/2])
		}
	}()
	for i := range *deaths {
		name, ranks := names[i%len(names)], 2+random.IntN(3)
		victim, large := random.IntN(ranks), random.IntN(2)
		t.Run(fmt.Sprintf("%d/%s/rank %d of %d/large=%d", i, name, victim, ranks, large), func(t *testing.T) {
			p := part{
				Config: yamlFor(ranks), Rounds: 1, Timeout: patience / 2,
				Scene: name, Seed: random.Uint64(), Victim: victim, Count: large,
			}
			j := start(t, ranks, p, func(rank int, p *part) { p.Talks = rank == victim })
			v := j.ranks[victim]
			v.await(name, 1+random.IntN(10))
			time.Sleep(somewhat(random, 8*time.Millisecond))
			v.signal(syscall.SIGKILL)
			killed := time.Now()
			reports := make([]report, ranks)
			j.others(victim, func(r *rank) { reports[r.number] = r.sound() })
			_ = v.report()
			for r, got := range reports {
				switch {
				case r == victim || got.Err == "" && got.Text == free:
				case got.Lost != nil && got.LostRank == victim && got.Lost.PID == v.pid() && got.LostAt.Sub(killed) < patience/4:
					took[name] = append(took[name], got.LostAt.Sub(killed))
				case name == "operators" && got.AbortedBy != nil && strings.Contains(got.Err, fmt.Sprintf("rank %d (pid %d) is gone", victim, v.pid())):
					// A neighbour of the victim found it first, and ended the halo exchange for all.
					took[name] = append(took[name], got.LostAt.Sub(killed))
				default:
					t.Errorf("rank %d at %s after %v: rank %d: %+v: %q; want that rank %d (pid %d) is lost",
						r, got.Point, got.LostAt.Sub(killed), got.LostRank, got.Lost, got.Err, victim, v.pid())
				}
			}
			j.leavesNothing()
		})
	}
}

// free is the point that a rank prints when it does not need the rank that dies.
const free = "free"

// A place is where a rank works until another dies.
type place struct {
	*rand.Rand         // the same numbers on all ranks
	victim, rank, size int
	all, team          *dist.ProcessGroup // some, with the victim; nil on others
	large              bool
	operator           primitive.Operator[float32] // see operators
	world              *partition.Partition        // of the operator
	reducer            *ddp.Reducer                // see trains
}

// works are what a rank does at its place, again and again. ranks are the global ranks to which
// the ranks in the error refer.
var works = map[string]func(*place) (ranks []int, err error){
	"started":     (*place).start,
	"new groups":  (*place).newGroups,
	"subgroup":    (*place).subgroup,
	"trains":      (*place).trains,
	"sent to":     (*place).sentTo,
	"received of": (*place).receivedOf,
	"objects":     (*place).objects,
	"both ways":   (*place).bothWays,
	"operators":   (*place).operators,
	"regions":     (*place).regions,
	"no room":     (*place).noRoom,
}

// work works until the victim dies, and beside that, and longer, with the others.
func (p *part) work(at func(string), r *result) error {
	all, err := dist.Default()
	if err != nil {
		return err
	}
	w := &place{Rand: rand.New(rand.NewPCG(p.Seed, 0)), victim: p.Victim, rank: all.Rank(), size: all.Size(), all: all, large: p.Count == 1}
	rest, err := dist.NewGroup(slices.DeleteFunc(all.Ranks(), func(rank int) bool { return rank == p.Victim }))
	if err != nil {
		return err
	}
	if w.team, err = dist.NewGroup([]int{p.Victim, (p.Victim + 1) % w.size}); err != nil {
		return err
	}
	var over atomic.Bool
	beside := make(chan error, 1)
	if rest != nil {
		go func() { beside <- goOn(rest, &over) }()
	}
	var ranks []int
	for err == nil {
		at(p.Scene)
		ranks, err = works[p.Scene](w)
	}
	r.LostAt = time.Now()
	if lost, ok := errors.AsType[*dist.PeerLostError](err); ok && lost.Rank < len(ranks) {
		r.LostRank = ranks[lost.Rank]
	}
	if errors.Is(err, errFree) {
		r.Text, err = free, nil
	}
	err = errors.Join(err, w.close())
	over.Store(true)
	if failed := <-beside; failed != nil {
		r.Wrong = "among the others: " + failed.Error()
	}
	return err
}

var errFree = errors.New(free)

// goOn makes calls and sends messages in a group until all of its ranks report the end, and a
// little longer.
func goOn(g *dist.ProcessGroup, over *atomic.Bool) error {
	in := dist.WithGroup(g)
	for left := 5; left > 0; {
		mine := []int64{0, 1}
		if over.Load() {
			mine[0] = 1
		}
		if err := dist.AllReduce(mine, dist.Sum, in); err != nil {
			return err
		}
		if mine[1] != int64(g.Size()) {
			return fmt.Errorf("a sum is %d, want %d", mine[1], g.Size())
		}
		if mine[0] == mine[1] {
			left--
		}
		next, _ := g.GlobalRank((g.Rank() + 1) % g.Size())
		before, _ := g.GlobalRank((g.Rank() + g.Size() - 1) % g.Size())
		got, sent := []int{0}, []int{g.Rank()}
		if _, err := dist.SendRecv(got, before, sent, next, 0, in); err != nil {
			return err
		}
		if want := (g.Rank() + g.Size() - 1) % g.Size(); got[0] != want {
			return fmt.Errorf("a message is from rank %d, want %d", got[0], want)
		}
	}
	return nil
}

// vector returns elements, few or several MiB of them.
func (w *place) vector() []float32 {
	n := 1 + w.IntN(1000)
	if w.large {
		n = 1<<20 + w.IntN(1<<19)
	}
	return make([]float32, n)
}

// wait waits for all, and returns the first error.
func wait(all []*dist.Work, err error) error {
	for _, started := range all {
		if failed := started.Wait(context.Background()); err == nil {
			err = failed
		}
	}
	return err
}

func (w *place) start() ([]int, error) {
	var all []*dist.Work
	for i := range 8 {
		v := w.vector()
		started, err := []func() (*dist.Work, error){
			func() (*dist.Work, error) { return dist.AllReduceAsync(v, dist.Sum) },
			func() (*dist.Work, error) { return dist.BroadcastAsync(v, i%w.size) },
			func() (*dist.Work, error) { return dist.AllGatherAsync(make([]float32, len(v)*w.size), v) },
		}[w.IntN(3)]()
		if err != nil {
			return w.all.Ranks(), wait(all, err)
		}
		all = append(all, started)
	}
	return w.all.Ranks(), wait(all, nil)
}

func (w *place) newGroups() ([]int, error) {
	var made *dist.ProcessGroup
	var err error
	members := w.all.Ranks()
	switch w.IntN(3) {
	case 0:
		made, err = dist.NewGroup(members)
	case 1:
		made, err = dist.Split(0, -w.rank)
		slices.Reverse(members)
	default:
		members = []int{w.victim, (w.victim + 1 + w.IntN(w.size-1)) % w.size}
		made, err = dist.NewGroup(members)
		slices.Sort(members)
	}
	switch _, failed := errors.AsType[*dist.InitializationFailedError](err); {
	case failed && !strings.Contains(err.Error(), fmt.Sprintf("group of ranks %d", members[0])):
		return nil, fmt.Errorf("the error does not say which group could not be made: %w", err)
	case failed:
		return members, err
	case err != nil || made == nil:
		return w.all.Ranks(), err
	}
	if err := dist.Barrier(dist.WithGroup(made)); err != nil {
		return members, err
	}
	return w.all.Ranks(), dist.DestroyProcessGroup(dist.WithGroup(made))
}

func (w *place) subgroup() ([]int, error) {
	if w.team == nil {
		return nil, errFree
	}
	v, kind := w.vector(), w.IntN(4)
	in := dist.WithGroup(w.team)
	switch kind {
	case 0:
		return w.team.Ranks(), dist.AllReduce(v, dist.Sum, in)
	case 1:
		return w.team.Ranks(), dist.Broadcast(v, w.victim, in)
	case 2:
		return w.team.Ranks(), dist.AllGather(make([]float32, 2*len(v)), v, in)
	default:
		return w.team.Ranks(), dist.Barrier(in)
	}
}

// receivedOf receives from the victim, which waits until all have.
func (w *place) receivedOf() ([]int, error) {
	v := w.vector()
	if w.rank != w.victim {
		_, err := dist.Recv(v, w.victim, 3)
		return w.all.Ranks(), err
	}
	var all []*dist.Work
	for rank := range w.size {
		if rank != w.victim {
			started, err := dist.Isend(v, rank, 3)
			if err != nil {
				return w.all.Ranks(), wait(all, err)
			}
			all = append(all, started)
		}
	}
	return w.all.Ranks(), wait(all, nil)
}

// sentTo sends to the victim.
func (w *place) sentTo() ([]int, error) {
	v := w.vector()
	if w.rank != w.victim {
		return w.all.Ranks(), dist.Send(v, w.victim, 4)
	}
	for rank := range w.size {
		if rank != w.victim {
			if _, err := dist.Recv(v, rank, 4); err != nil {
				return w.all.Ranks(), err
			}
		}
	}
	return w.all.Ranks(), nil
}

// bothWays exchanges with the victim, by calls that were started.
func (w *place) bothWays() ([]int, error) {
	v := w.vector()
	var all []*dist.Work
	for rank := range w.size {
		if (rank == w.victim) == (w.rank == w.victim) {
			continue
		}
		started, err := dist.BatchIsendIrecv([]dist.P2POp{dist.RecvOp(make([]float32, len(v)), rank, 5), dist.SendOp(v, rank, 5)})
		all = append(all, started...)
		if err != nil {
			return w.all.Ranks(), wait(all, err)
		}
	}
	return w.all.Ranks(), wait(all, nil)
}

func (w *place) objects() ([]int, error) {
	type object struct{ Numbers []float32 }
	o, kind, root := object{w.vector()}, w.IntN(3), w.IntN(w.size)
	var err error
	switch kind {
	case 0:
		err = dist.BroadcastObject(&o, root)
	case 1:
		_, err = dist.AllGatherObject(o)
	default:
		_, err = dist.GatherObject(o, root)
	}
	return w.all.Ranks(), err
}

func (w *place) regions() ([]int, error) {
	ctx := context.Background()
	region, err := ccl.CreateSharedRegion[uint8](ctx, w.all.Communicator(), 10_000)
	if err == nil {
		err = errors.Join(region.Fence(ctx), region.Close())
	}
	return w.all.Ranks(), err
}
