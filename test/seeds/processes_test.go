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
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/stress"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
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

	isStalled bool // for longer than calls wait
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

	all := make([]*process, ranks)
	r := interleave.Run(t, o, func() {
		for rank := range all {
			all[rank] = &process{label: fmt.Sprint("rank ", rank), account: p.NewAccount(rank), ended: make(chan struct{})}
			interleave.Go(func() { all[rank].run(rank, ranks, int(seed/5%4), settings, p) })
		}
		for _, f := range faults {
			interleave.At(f.step, func() { f.happen(p, all[f.rank]) })
		}
		for _, q := range all {
			interleave.Receive(q.ended)
		}
		for _, q := range all {
			if !q.isDead {
				q.account.Settle(0)
			}
		}
	})
	left := shm.EndSimulation(func(label string) bool {
		return slices.ContainsFunc(all, func(q *process) bool { return q.label == label && q.isDead })
	})
	if r.Finding != nil {
		_, _ = removeFiles()
		return r, nil
	}
	err = errors.Join(left, checkProcesses(p, all))
	if err != nil {
		err = fmt.Errorf("%v: %w", faults, err)
	}
	return r, err
}

func (q *process) run(rank, ranks, rounds int, s *config.Settings, p *stress.Departures) {
	interleave.SetLabel(q.label)
	ep, err := shm.Join(context.Background(), shm.Job{Name: "job", Rank: rank, Size: ranks})
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

// reduceShared lets ranks reduce memory of regions and memory of their own, in turn. They free the
// first region at different times.
func (q *process) reduceShared(c *ccl.Communicator, rounds int) error {
	const length = 700
	ctx := context.Background()
	first, err := ccl.CreateSharedRegion[int32](ctx, c, length*c.Size())
	if err != nil {
		return err
	}
	second, err := ccl.CreateSharedRegion[int32](ctx, c, length*c.Size())
	if err != nil {
		return errors.Join(err, first.Close())
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
		causes[rank] = q.isDead || q.isStalled
		before[rank] = q.err
	}
	hasCause := func(rank int) bool {
		// A process may die before it has written why a group cannot be made.
		_, isOfGroup := errors.AsType[*transport.InitializationFailedError](before[rank])
		return causes[rank] || isOfGroup && hasDead && len(namedRanks(before[rank])) == 0
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

// removeFiles removes the files that a job has left, and returns their names.
func removeFiles() (names []string, err error) {
	files, err := os.ReadDir(directory)
	for _, f := range files {
		names = append(names, f.Name())
		err = errors.Join(err, os.Remove(filepath.Join(directory, f.Name())))
	}
	return names, err
}
