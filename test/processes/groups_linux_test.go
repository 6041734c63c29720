package processes

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/goccl/goccl/dist"
)

// A thousand groups, made and destroyed, leave no memory, no mapping and no file, in the process
// and in /dev/shm.
func TestManyGroups(t *testing.T) {
	const ranks, groups = 2, 1000
	j := start(t, ranks, part{Config: yamlFor(ranks), Rounds: 1, Timeout: patience / 2, Scene: "many groups", Count: groups}, nil)
	for _, r := range j.ranks {
		got := r.sound()
		if got.Err != "" {
			t.Errorf("rank %d: %s", r.number, got.Err)
		}
		t.Logf("rank %d: %d groups have changed what it has by %+v", r.number, groups, got.Grown)
		if g := got.Grown; g.Resident > 4<<20 && !raceDetector || g.Mappings > 16 || g.Files > 0 || g.Segments > 0 {
			t.Errorf("rank %d: %d groups have left %+v", r.number, groups, g)
		}
	}
	j.leavesNothing()
}

// belongings are the resources of a rank.
type belongings struct {
	Resident int // bytes
	Mappings int
	Files    int
	Segments int // in /dev/shm, of the job
}

// manyGroups makes groups, uses and destroys them, and notes what that leaves.
func (p *part) manyGroups(at func(string), r *result) error {
	make := func(count int) error {
		for i := range count {
			var g *dist.ProcessGroup
			var err error
			if i%2 == 0 {
				g, err = dist.NewGroup([]int{0, 1})
			} else {
				g, err = dist.Split(0, 0)
			}
			if err != nil {
				return err
			}
			in := dist.WithGroup(g)
			v, other := []int{1}, []int{0}
			_, sent := dist.SendRecv(other, 1-g.Rank(), v, 1-g.Rank(), 0, in)
			if g.Ranks()[0] != 0 { // ranks with equal keys stay in order
				r.Wrong = "rank 0 is not the first"
			}
			if err := errors.Join(sent, dist.AllReduce(v, dist.Sum, in), dist.DestroyProcessGroup(in)); err != nil {
				return err
			}
		}
		return dist.Barrier()
	}
	if err := make(100); err != nil {
		return err
	}
	before := p.belongings()
	if err := make(p.Count); err != nil {
		return err
	}
	after := p.belongings()
	r.Grown = belongings{after.Resident - before.Resident, after.Mappings - before.Mappings, after.Files - before.Files, after.Segments - before.Segments}
	return dist.Barrier() // both have counted
}

func (p *part) belongings() (b belongings) {
	debug.FreeOSMemory()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		panic(err)
	}
	segments, err := filepath.Glob("/dev/shm/*" + strings.TrimPrefix(os.Getenv("GOCCL_SHM_NAME"), "/") + "*")
	if err != nil {
		panic(err)
	}
	return belongings{
		Resident: 1024 * kilobytes("/proc/self/status", "VmRSS:"),
		Mappings: strings.Count(string(maps), "\n"), Files: openFiles(), Segments: len(segments),
	}
}
