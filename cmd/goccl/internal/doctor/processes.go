package doctor

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport/shm"
)

// sharedMemory is the directory of segments.
const sharedMemory = "/dev/shm"

// Processes returns findings about ranks as processes. It tries the kernel features that
// they need. Jobs of `needed` ranks must fit; the other sizes are reported.
func Processes(ctx context.Context, needed int, others ...int) []Finding {
	if runtime.GOOS != "linux" {
		return []Finding{ok(PartProcesses, "system", "they need Linux, and this is %s", runtime.GOOS).
			but(Note, "run ranks as goroutines, with dist.Spawn")}
	}
	d := lookAt(sharedMemory)
	all := []Finding{d.finding()}
	if d.err == nil {
		all = append(all, d.room(needed, others))
	}
	all = append(all, tryAll(sharedMemory)...)
	if Count(all, Problem) == 0 {
		all = append(all, trial(ctx))
	}
	return all
}

// directory describes the directory of segments.
type directory struct {
	path       string
	err        error // why it is unknown or not writable
	tmpfs      bool
	size, free int // bytes; both are 0 for a tmpfs without limit
	full       bool
}

const enlarge = "make it larger: mount -o remount,size=1G /dev/shm; in containers --shm-size=1g, or a volume in memory mounted there"

func (d directory) finding() Finding {
	f := ok(PartProcesses, d.path, "tmpfs, %s, %s free; this user may write", Amount(float64(d.size)), Amount(float64(d.free)))
	switch {
	case d.err != nil:
		f.Says = d.err.Error()
		return f.but(Problem, "mount a tmpfs there in which this user may write: mount -t tmpfs -o mode=1777 tmpfs "+d.path)
	case d.tmpfs && d.size == 0:
		f.Says = "tmpfs without limit; this user may write"
	case !d.tmpfs:
		f.Says = strings.Replace(f.Says, "tmpfs", "no tmpfs", 1)
		return f.but(Note, "what ranks write goes to a disk in time; mount a tmpfs there")
	}
	return f
}

// room reports which sizes of jobs fit now. It is a note if only larger ones than needed
// do not fit.
func (d directory) room(needed int, others []int) Finding {
	ranks := slices.Compact(slices.Sorted(slices.Values(append(others, needed))))
	var sizes []string
	fit := 0 // ranks of the largest job that fits
	for _, n := range ranks {
		need := shm.SegmentBytes(n)
		sizes = append(sizes, fmt.Sprintf("%s for %d ranks", Amount(float64(need)), n))
		if !d.full && (d.size == 0 || need <= d.free) {
			fit = n
		}
	}
	f := ok(PartProcesses, "room", "a job takes %s", strings.Join(sizes, ", "))
	switch {
	case fit == ranks[len(ranks)-1]:
		f.Says += ": there is room"
	case d.full:
		f.Says += ": the file system has no inode left"
		return f.but(Problem, "remove what lies in "+d.path)
	case fit == 0:
		f.Says += ": there is room for none"
		return f.but(Problem, enlarge)
	default:
		f.Says += fmt.Sprintf(": there is room for %d", fit)
		if fit < needed {
			return f.but(Problem, enlarge)
		}
		return f.but(Note, enlarge)
	}
	return f
}

// trial runs a job of two ranks that map the memory separately, as processes do.
func trial(ctx context.Context) Finding {
	const ranks, count = 2, 1 << 18
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	job := fmt.Sprintf("doctor-%x", time.Now().UnixNano())
	began := time.Now()
	errs := make(chan error, ranks)
	for rank := range ranks {
		go func() { errs <- takePart(ctx, shm.Job{Name: job, Rank: rank, Size: ranks}, make([]float32, count)) }()
	}
	var failure error
	for range ranks {
		if err := <-errs; err != nil && failure == nil { // the second is a consequence of the first
			failure = err
			cancel()
		}
	}
	f := ok(PartProcesses, "a job", "%d ranks have met there, and an all_reduce of %s came out right, in %s",
		ranks, Amount(4*count), time.Since(began).Round(time.Millisecond))
	if failure != nil {
		f.Says = failure.Error()
		return f.but(Problem, "what the error says")
	}
	return f
}

// takePart is a rank of the trial.
func takePart(ctx context.Context, j shm.Job, x []float32) (err error) {
	ep, err := shm.Join(ctx, j)
	if err != nil {
		return err
	}
	c, err := ccl.New(ctx, ep)
	if err != nil {
		return err
	}
	defer func() {
		if closed := c.Close(); err == nil {
			err = closed
		}
	}()
	for i := range x {
		x[i] = float32(i%1000 + j.Rank)
	}
	if err := ccl.AllReduce(ctx, c, x, x, ccl.Sum); err != nil {
		return err
	}
	for i := range x {
		if want := float32(2*(i%1000) + 1); x[i] != want {
			return fmt.Errorf("rank %d: element %d of the sum is %v, want %v: this is a defect of goccl or of the machine", j.Rank, i, x[i], want)
		}
	}
	return c.Barrier(ctx)
}

// Leftovers returns a finding about what dead jobs have left in shared memory.
func Leftovers(found []shm.Leftover, err error) Finding {
	f := ok(PartProcesses, "leftovers", "no leftovers of this user's dead jobs")
	if err != nil {
		f.Says = unknown + ": " + err.Error()
		return f.but(Note, "")
	}
	if len(found) == 0 {
		return f
	}
	bytes, what := 0, "jobs have"
	if len(found) == 1 {
		what = "job has"
	}
	for _, l := range found {
		bytes += l.Bytes
	}
	f.Says = fmt.Sprintf("%d dead %s left %s behind, such as %s of %s", len(found), what, Amount(float64(bytes)),
		found[0].Path, found[0].Made.Format(time.DateTime))
	return f.but(Note, "goccl doctor --clean")
}
