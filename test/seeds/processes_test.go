//go:build interleave && linux

package seeds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
	"golang.org/x/sys/unix"
)

// directory is that of simulated processes, "" at first.
var directory string

// simulateProcesses prepares the processes of a job. Messages and inputs arrive in pieces.
func simulateProcesses(t *testing.T, seed uint64) {
	if directory == "" {
		dir, err := os.MkdirTemp("/dev/shm", "goccl-seeds-")
		if err != nil {
			t.Fatal(err)
		}
		directory = dir
		t.Cleanup(func() {
			directory = ""
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
	shm.Simulate(directory, geometryOf(seed))
}

// geometryOf draws sizes of shared memory.
func geometryOf(seed uint64) func(ranks int) shm.Geometry {
	return func(ranks int) shm.Geometry {
		g := shm.SmallestGeometry(ranks)
		g.Slot, g.Slots = []int{128, 1024}[seed/2%2], 1+int(seed/4%2)
		g.Piece = []int{144, 1024, 4096}[seed/8%3]
		g.Payload = []int{48, 600}[seed/24%2]
		g.Pool = 2 * ranks * ranks * g.Slots * (g.Slot + 1024)
		return g
	}
}

// A process is a simulated process.
type process struct {
	label   string
	account *stress.Account
	isEnded bool
	isDead  bool

	isStalled bool   // for longer than calls wait
	hasLacked bool   // memory or descriptors
	unmade    string // why a region could not be made
	hasJoined bool
	err       error
	wrong     error         // a result is
	ended     chan struct{} // closed when it has ended or is dead
}

func (q *process) end(isDead bool) {
	if !q.isEnded {
		q.isEnded, q.isDead = true, isDead
		close(q.ended)
	}
}

// An ending is what happens to a process: it is killed or stands still.
type ending struct {
	rank  int
	step  int
	stall time.Duration // 0: it is killed
	bury  time.Duration // from its death until the system releases its locks
	after int           // system calls after which some fail for want of memory or descriptors
	fails int           // so many; 0: none
}

var processesConfig = func() *config.Config {
	c, err := config.Parse("ccl.yaml", []byte("version: 1\nalgorithms: {direct: {module: direct}, ring: {module: ring}}\n"+
		"topology: {kind: ring_1d}\nrules: [{algorithm: direct}]\n"))
	if err != nil {
		panic(err)
	}
	return c
}()

const callTimeout = 5 * time.Second

func drawEndings(seed uint64, ranks int) (faults []ending) {
	r := rand.New(rand.NewPCG(seed, 30))
	if r.IntN(5) == 0 {
		return []ending{{rank: r.IntN(ranks), after: r.IntN(8 << r.IntN(4)), fails: 1 + r.IntN(3)}}
	}
	for range []int{0, 1, 1, 1, 2}[r.IntN(5)] {
		f := ending{rank: r.IntN(ranks), step: 300 << r.IntN(7)}
		f.step += r.IntN(f.step)
		switch r.IntN(6) {
		case 0:
			f.stall = time.Duration(1 + r.IntN(int(callTimeout/2)))
		case 1:
			f.stall = 5 * callTimeout
		default:
			f.bury = time.Duration(r.IntN(int(200*time.Millisecond))) * time.Duration(r.IntN(2))
		}
		faults = append(faults, f)
	}
	return faults
}

// runProcesses runs a program of calls and messages on processes, which leave, die and stand still.
func runProcesses(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	simulateProcesses(t, seed)
	ranks := 2 + int(seed%3)
	p := stress.NewDepartures(seed, stress.Options{Ranks: ranks, Events: 10, Longest: 40, Algorithms: []string{"direct", "ring"}},
		stress.Close, stress.Close, stress.Abort)
	interleave.SetProcessors([]int{1, 8}[seed/3%2])
	faults := drawEndings(seed, ranks)
	isStalled := slices.ContainsFunc(faults, func(f ending) bool { return f.stall > callTimeout })
	o.IsLate = !isStalled && seed/6%2 == 0
	if isStalled { // meanwhile others try a receive from any rank again and again: see anyTimeout
		o.Limit = 5_000_000
	}

	hasStalls := slices.ContainsFunc(faults, func(f ending) bool { return f.stall > 0 })
	switch {
	case o.IsLate, hasStalls:
	case len(faults) > 0: // locks of the dead are released within this time
		o.Patience = 250 * time.Millisecond
	default: // a sleep that lasts longer has missed its wake-up
		o.Patience = 30 * time.Millisecond
	}

	timeout := callTimeout
	if o.IsLate {
		timeout = -1 // the clock runs ahead
	}
	settings, err := processesConfig.Resolve(config.Request{Ranks: ranks, Timeout: timeout})
	if err != nil {
		return interleave.Result{}, err
	}

	opened := openFiles()
	all, others := make([]*process, ranks), make([]*process, seed/7%3)
	joinTime := time.Minute // some rank may die before it has joined
	if o.IsLate {
		joinTime, others = 0, nil
	}
	r := interleave.Run(t, o, func() {
		for rank := range others {
			others[rank] = &process{label: fmt.Sprint("rank ", rank, " of the other job"), ended: make(chan struct{})}
			interleave.Go(func() {
				interleave.Compute(time.Duration(seed/2%4000) * 100) // so many steps
				others[rank].runOther(rank, len(others))
			})
		}
		for rank := range all {
			all[rank] = &process{label: fmt.Sprint("rank ", rank), account: p.NewAccount(rank), ended: make(chan struct{})}
			interleave.SetLabel(all[rank].label) // it may be killed before its first step
			interleave.Go(func() { all[rank].run(rank, ranks, int(seed/5%4), joinTime, settings, p) })
		}
		interleave.SetLabel("")
		for _, f := range faults {
			if f.fails > 0 {
				shm.Exhaust(all[f.rank].label, f.after, f.fails)
				continue
			}
			interleave.At(f.step, func() { f.happen(p, all[f.rank]) })
		}
		for _, q := range slices.Concat(all, others) {
			interleave.Receive(q.ended)
		}
		for _, q := range all {
			if !q.isDead {
				q.account.Settle(0)
			}
		}
	})
	for _, q := range all {
		q.hasLacked = shm.HasLacked(q.label)
	}
	left := shm.EndSimulation(func(label string) bool {
		return slices.ContainsFunc(all, func(q *process) bool { return q.label == label && q.isDead })
	})
	if r.Finding != nil {
		_, _ = removeFiles()
		return r, nil
	}
	err = errors.Join(left, checkProcesses(p, all))
	for _, q := range others {
		err = errors.Join(err, wrapOther(q))
	}
	if n := openFiles() - opened; n > 0 && !slices.ContainsFunc(all, func(q *process) bool { return q.isDead }) {
		err = errors.Join(err, fmt.Errorf("%d files are still open", n))
	}
	if err != nil {
		err = fmt.Errorf("%v: %w", faults, err)
	}
	return r, err
}

func (q *process) run(rank, ranks, rounds int, joinTime time.Duration, s *config.Settings, p *stress.Departures) {
	interleave.SetLabel(q.label)
	ctx := context.Background()
	if joinTime > 0 {
		within, cancel := interleave.WithTimeout(ctx, joinTime)
		defer cancel()
		ctx = within
	}
	ep, err := shm.Join(ctx, shm.Job{Name: "job", Rank: rank, Size: ranks})
	var c *ccl.Communicator
	if err == nil {
		c, err = ccl.New(context.Background(), ep, ccl.WithSelector(s))
	}
	if err == nil {
		q.hasJoined = true
		if rounds > 0 {
			err = q.reduceShared(c, rounds)
		}
		if err != nil {
			_ = c.Close()
		}
	}
	if err == nil {
		_, err = p.Run(context.Background(), c, stress.Exits{Account: q.account})
	}
	q.err = err
	q.end(false)
}

// runOther runs a rank of a job that has the name of the other job, and a secret of its own.
func (q *process) runOther(rank, ranks int) {
	interleave.SetLabel(q.label)
	defer q.end(false)
	s, err := processesConfig.Resolve(config.Request{Ranks: ranks, Timeout: -1})
	if err != nil {
		panic(err)
	}
	ep, err := shm.Join(context.Background(), shm.Job{Name: "job", Rank: rank, Size: ranks, Secret: "of the other job"})
	if err != nil {
		q.err = err
		return
	}
	c, err := ccl.New(context.Background(), ep, ccl.WithSelector(s))
	if err == nil {
		err = errors.Join(q.reduceShared(c, 1), c.Close())
	}
	q.err = err
}

func wrapOther(q *process) error {
	if err := errors.Join(q.err, q.wrong); err != nil {
		return fmt.Errorf("%s: %w", q.label, err)
	}
	return nil
}

// reduceShared lets ranks reduce memory of regions and memory of their own, in turn. They free the
// first region at different times.
func (q *process) reduceShared(c *ccl.Communicator, rounds int) error {
	const length = 700
	ctx := context.Background()
	first, err := ccl.CreateSharedRegion[int32](ctx, c, length*c.Size())
	if err != nil {
		return q.goOn(err)
	}
	second, err := ccl.CreateSharedRegion[int32](ctx, c, length*c.Size())
	if err != nil {
		return errors.Join(q.goOn(err), first.Close())
	}

	buffers := [][]int32{first.BlockSlice(), make([]int32, length)}
	for round := range rounds * len(buffers) {
		if round == 1+c.Rank() { // others still use the first
			if err := first.Close(); err != nil {
				return err
			}
			buffers[0] = second.BlockSlice()
		}

		want, buffer := int32(0), buffers[round%len(buffers)]
		for rank := range c.Size() {
			want += int32(round*10 + rank)
		}
		for i := range buffer {
			buffer[i] = int32(round*10 + c.Rank())
		}

		if err := ccl.AllReduce(ctx, c, buffer, buffer, ccl.Sum); err != nil {
			return errors.Join(err, first.Close(), second.Close())
		}
		if i := slices.IndexFunc(buffer, func(x int32) bool { return x != want }); i >= 0 {
			q.wrong = fmt.Errorf("%s, round %d of shared memory: element %d is %d instead of %d", q.label, round, i, buffer[i], want)
		}
	}
	return errors.Join(first.Close(), second.Close())
}

// goOn returns nil if a region cannot be made for want of memory: the group lives on.
func (q *process) goOn(err error) error {
	var none *transport.AllocationFailedError
	if errors.As(err, &none) {
		q.unmade = none.Message
		return nil
	}
	return err
}

func (f ending) happen(p *stress.Departures, q *process) {
	switch {
	case q.isEnded:
	case f.stall > 0:
		if f.stall > callTimeout {
			q.isStalled = true
			q.account.Stall()
		}
		interleave.Stall(q.label, f.stall)
	default:
		interleave.Kill(q.label)
		p.Kill(q.account)
		interleave.Sleep(f.bury)
		shm.Bury(q.label)
		q.end(true)
	}
}

// checkProcesses checks how processes have ended.
func checkProcesses(p *stress.Departures, all []*process) error {
	accounts := make([]*stress.Account, len(all))
	for rank, q := range all {
		accounts[rank] = q.account
	}
	errs := []error{p.Check(accounts)}
	causes, before := make([]bool, len(all)), make([]error, len(all))
	hasDead := slices.ContainsFunc(all, func(q *process) bool { return q.isDead })
	for rank, q := range all {
		errs = append(errs, q.wrong)
		causes[rank] = q.isDead || q.isStalled || q.hasLacked && isOfShortage(q.err)
		before[rank] = q.err
	}
	errs = append(errs, checkUnmade(all))
	hasCause := func(rank int) bool {
		// A process may die before it has written why a group cannot be made.
		_, isOfGroup := errors.AsType[*transport.InitializationFailedError](before[rank])
		return causes[rank] || (isOfGroup || !all[rank].hasJoined) && hasDead && len(namedRanks(before[rank])) == 0
	}
	if err := checkBlame(before, hasCause); err != nil {
		errs = append(errs, fmt.Errorf("before the program: %w", err))
	}

	files, err := removeFiles()
	if errs = append(errs, err); len(files) > 0 && !hasDead {
		errs = append(errs, fmt.Errorf("these files are left: %q", files))
	}
	return errors.Join(errs...)
}

// checkUnmade checks that a region that could not be made was made on no rank, and that all ranks tell
// which one had not enough memory or descriptors.
func checkUnmade(all []*process) error {
	for _, q := range all {
		isNamed := slices.ContainsFunc(all, func(p *process) bool { return p.hasLacked && strings.HasPrefix(q.unmade, p.label+": ") })
		why, _, _ := strings.Cut(q.unmade, "; the group lives on")
		isCut := len(why) == len("rank 0: ")+144 && !strings.HasSuffix(why, "...") // the shortest piece
		if isCut || q.unmade != all[0].unmade || q.unmade != "" && !isNamed {
			return fmt.Errorf("%s could not make a region for the reason %q, and %s for %q", q.label, q.unmade, all[0].label, all[0].unmade)
		}
	}
	return nil
}

// isOfShortage reports whether an error says that a process has not enough memory or descriptors.
func isOfShortage(err error) bool {
	_, isAllocation := errors.AsType[*transport.AllocationFailedError](err)
	return isAllocation || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENOMEM)
}

// openFiles returns how many files of simulated processes are open.
func openFiles() (n int) {
	const open = "/proc/self/fd"
	files, _ := os.ReadDir(open)
	for _, f := range files {
		if path, err := os.Readlink(filepath.Join(open, f.Name())); err == nil && strings.HasPrefix(path, directory) {
			n++
		}
	}
	return n
}

// removeFiles removes the files that a job has left, and returns their names.
func removeFiles() (names []string, err error) {
	files, err := os.ReadDir(directory)
	for _, f := range files {
		names = append(names, f.Name())
		err = errors.Join(err, os.Remove(filepath.Join(directory, f.Name())))
	}
	return names, err
}
