package doctor

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/transport/shm"
)

// sharedMemory is the directory of segments.
const sharedMemory = "/dev/shm"

// Processes passes findings about ranks as processes to found, each as soon as it is known. It
// tries the kernel features that they need. Jobs of `needed` ranks must fit; the other sizes
// are reported. The available memory is that below root; see Machine.
func Processes(ctx context.Context, root string, found func(Finding), needed int, others ...int) {
	if runtime.GOOS != "linux" {
		found(ok(PartProcesses, "system", "they need Linux, and this is %s", runtime.GOOS).
			with(Note, "run ranks as goroutines, with dist.Spawn"))
		return
	}
	problems := 0
	add := func(findings ...Finding) {
		problems += Count(findings, Problem)
		for _, f := range findings {
			found(f)
		}
	}

	d := examineDirectory(sharedMemory)
	add(limits(root, needed), d.finding())
	if d.err != nil || d.isFull() {
		return // whatever is tried there fails
	}
	add(d.room(needed, others))
	add(tryProbes(sharedMemory)...)
	if problems > 0 {
		return
	}

	need := float64(shm.SegmentBytes(trialRanks) + trialRanks*4*trialCount)
	if available := measure.AvailableMemory(root); lacks(available, need) {
		add(ok(PartProcesses, "a job", "not tried: %s of memory are available", Amount(float64(available))).
			with(Note, fmt.Sprintf("free more than %s", Amount(2*need))))
		return
	}
	add(trial(ctx))
}

// directory describes the directory of segments.
type directory struct {
	path       string
	err        error // why it is unknown or not writable
	tmpfs      bool
	size, free int // bytes; both are 0 for a tmpfs without limit
	noInode    bool
}

func (d directory) isFull() bool { return d.err == nil && (d.noInode || d.size > 0 && d.free == 0) }

const enlarge = "make it larger: mount -o remount,size=1G /dev/shm; in containers --shm-size=1g, or a volume in memory mounted there"

func (d directory) finding() Finding {
	f := ok(PartProcesses, d.path, "tmpfs, %s, %s free; this user may write", Amount(float64(d.size)), Amount(float64(d.free)))
	switch {
	case d.err != nil:
		f.Says = d.err.Error()
		return f.with(Problem, "mount a tmpfs there in which this user may write: mount -t tmpfs -o mode=1777 tmpfs "+d.path)
	case d.isFull():
		f.Says = fmt.Sprintf("it is full: %s of %s are left", Amount(float64(d.free)), Amount(float64(d.size)))
		if d.noInode {
			f.Says = "it is full: no inode is left"
		}

		return f.with(Problem, "remove what dead jobs have left (goccl doctor --clean) and what else lies there, or "+enlarge)
	case d.tmpfs && d.size == 0:
		f.Says = "tmpfs without limit; this user may write"
	case !d.tmpfs:
		f.Says = strings.Replace(f.Says, "tmpfs", "no tmpfs", 1)
		return f.with(Note, "what ranks write goes to a disk in time; mount a tmpfs there")
	}
	return f
}

// room reports which sizes of jobs fit now. It is a note if only larger ones than needed
// do not fit.
func (d directory) room(needed int, others []int) Finding {
	ranks := slices.Compact(slices.Sorted(slices.Values(append(others, needed))))
	var sizes []string
	fitting := 0 // ranks of the largest job that fits
	for _, n := range ranks {
		need := shm.SegmentBytes(n)
		sizes = append(sizes, fmt.Sprintf("%s for %d ranks", Amount(float64(need)), n))
		if d.size == 0 || need <= d.free {
			fitting = n
		}
	}

	f := ok(PartProcesses, "room", "a job takes %s", strings.Join(sizes, ", "))
	switch {
	case fitting == ranks[len(ranks)-1]:
		f.Says += ": there is room"
		return f
	case fitting == 0:
		f.Says += ": there is room for none"
		return f.with(Problem, enlarge)
	}

	f.Says += fmt.Sprintf(": there is room for %d", fitting)
	if fitting < needed {
		return f.with(Problem, enlarge)
	}
	return f.with(Note, enlarge)
}

// The job of trial: its ranks, and the elements of each.
const trialRanks, trialCount = 2, 1 << 18

// trial runs a job of two ranks that map the memory separately, as processes do.
func trial(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	job := fmt.Sprintf("doctor-%x", time.Now().UnixNano())
	began := time.Now()

	errs := make(chan error, trialRanks)
	for rank := range trialRanks {
		go func() {
			errs <- takePart(ctx, shm.Job{Name: job, Rank: rank, Size: trialRanks}, make([]float32, trialCount))
		}()
	}

	var failure error
	for range trialRanks {
		if err := <-errs; err != nil && failure == nil { // the second is a consequence of the first
			failure = err
			cancel()
		}
	}

	f := ok(PartProcesses, "a job", "%d ranks have met there, and an all_reduce of %s came out right, in %s",
		trialRanks, Amount(4*trialCount), time.Since(began).Round(time.Millisecond))
	if failure != nil {
		f.Says = failure.Error()
		return f.with(Problem, "what the error says")
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
	defer func() { err = cmp.Or(err, c.Close()) }()

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
		return f.with(Note, "")
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
	return f.with(Note, "goccl doctor --clean")
}
