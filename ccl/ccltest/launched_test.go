package ccltest

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/algorithms/doubletree"
	"github.com/goccl/goccl/algorithms/grid"
	"github.com/goccl/goccl/algorithms/hierarchical"
	"github.com/goccl/goccl/algorithms/mpi"
	"github.com/goccl/goccl/algorithms/pairwise"
	"github.com/goccl/goccl/algorithms/ring"
	"github.com/goccl/goccl/algorithms/tree"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/calls"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
	_ "github.com/goccl/goccl/transport/mpi"
	_ "github.com/goccl/goccl/transport/tcp"
)

// Variables of a process that a launcher has started as a rank. It makes the suite's calls instead of running tests: package
// test/mpi starts such ranks.
const (
	// callsVariable is about how many calls each kernel makes, 0 for all.
	callsVariable = "TEST_GOCCL_CALLS"
	// seedVariable selects them.
	seedVariable = "TEST_GOCCL_SEED"
	// levelsVariable is the number of nodes, if the ranks are on several and some node has several of them; else 1.
	levelsVariable = "TEST_GOCCL_LEVELS"
	// notesVariable is a directory for notes of ranks that are done.
	notesVariable = "TEST_GOCCL_NOTES"
)

func TestMain(m *testing.M) {
	if os.Getenv(callsVariable) == "" {
		os.Exit(m.Run())
	}
	flag.Parse()
	if err := launched(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("passed")
}

// launchedKernels are the algorithms that ranks of a launcher run. Small chunks bring their switching points within reach.
var launchedKernels = []struct {
	algorithm *ccl.Algorithm
	opts      []Option
}{
	{direct.Algorithm, []Option{RankOrdered()}},
	{pairwise.Algorithm, nil},
	{ring.Algorithm, nil},
	{ring.Algorithm, []Option{Params("chunk: 64")}},
	{tree.Algorithm, nil},
	{tree.Algorithm, []Option{Params("kind: binomial, chunk: 1KiB")}},
	{doubletree.Algorithm, nil},
	{doubletree.Algorithm, []Option{Params("chunk: 64")}},
	{grid.Algorithm, nil},
	{grid.Algorithm, []Option{Params("chunk: 64")}},
	{hierarchical.Algorithm, nil},
	{mpi.Algorithm, nil},
}

// lacks is why kernels reject all calls of some groups.
var lacks = map[string]string{
	"hierarchical": "the ranks are on one node, or each on a node of its own, or not placed node by node",
	"mpi":          "it needs a transport that has collectives of its own, as mpi has",
}

// Lengths in bytes from which transport mpi sends a message otherwise: in a packet that is not copied, and in several.
const (
	shortMessage = 8<<10 - 40
	messagePart  = 64 << 10
)

// someNumber is the number of the group of some ranks.
const someNumber = 1 << 62

// process is this process as one rank of a launcher's job.
type process struct {
	ctx      context.Context
	provider transport.Provider
	job      transport.Job
	calls    int // of each kernel; 0: all
	seed     uint64
	levels   int
}

// launched makes the calls of all algorithms, each in a new group of all ranks that MPI or TCP connects, and in a group of some of them. Where
// all of those are on one node, shared memory connects them.
func launched() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	p := &process{ctx: ctx}
	var err error
	if p.provider, err = transport.Lookup(cmp.Or(os.Getenv("GOCCL_TRANSPORT"), "mpi")); err != nil {
		return err
	}
	p.job.Launched, p.job.Origin = true, "its launcher counts differently"
	for variable, number := range map[string]*int{
		cmp.Or(named("GOCCL_SHM_RANK"), named("OMPI_COMM_WORLD_RANK"), "PMI_RANK"): &p.job.Rank, cmp.Or(named("GOCCL_SHM_SIZE"), named("OMPI_COMM_WORLD_SIZE"), "PMI_SIZE"): &p.job.Size,
		callsVariable: &p.calls, levelsVariable: &p.levels,
	} {
		if *number, err = strconv.Atoi(os.Getenv(variable)); err != nil {
			return fmt.Errorf("%s: %w", variable, err)
		}
	}
	if p.seed, err = strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err != nil {
		return err
	}
	for _, k := range launchedKernels {
		s := newSubject(k.algorithm, k.opts)
		s.timeout = 2 * time.Minute // rank 0 waits while the others make calls without it
		kinds := k.algorithm.Topologies
		if kinds == nil {
			kinds = []topology.Kind{topology.Ring1D}
		}
		for _, kind := range kinds {
			if err := p.run(s.of(kind)); err != nil {
				return fmt.Errorf("rank %d of %d: %s {%s} on a %v: %w", p.job.Rank, p.job.Size, s.algorithm.Name, s.params, kind, err)
			}
		}
	}
	if err := p.note(); err != nil {
		return err
	}
	return p.provider.Leave(ctx)
}

// named returns the variable's name if it is set.
func named(variable string) string {
	if os.Getenv(variable) == "" {
		return ""
	}
	return variable
}

// note notes that this rank is done, if there is a directory for that.
func (p *process) note() error {
	dir := os.Getenv(notesVariable)
	if dir == "" {
		return nil
	}
	file := filepath.Join(dir, strconv.Itoa(p.job.Rank))
	return errors.Join(os.WriteFile(file+".new", []byte("right"), 0o600), os.Rename(file+".new", file))
}

// run makes the calls of an algorithm.
func (p *process) run(s *subject) error {
	p.job.Attempt++
	eps, err := p.provider.Join(p.ctx, &p.job)
	if err != nil {
		return err
	}
	whole := eps[0]
	if whole.Name() != p.provider.Name {
		return fmt.Errorf("transport %s connects the ranks", whole.Name())
	}
	pick := upsideDown(whole.Size())
	if slices.Contains(pick, whole.Rank()) {
		part, err := whole.(transport.Groups).Group(p.ctx, someNumber, pick)
		if err != nil {
			return err
		}
		if err := p.makeCalls(s, part, (p.calls+2)/3); err != nil {
			return fmt.Errorf("group of ranks %v: %w", pick, err)
		}
	}
	return p.makeCalls(s, whole, p.calls)
}

// upsideDown returns the ranks from the last one down to 1, also 0 if there are two.
func upsideDown(ranks int) (members []int) {
	for r := ranks - 1; r > 0 || r == 0 && ranks == 2; r-- {
		members = append(members, r)
	}
	return members
}

// makeCalls makes this rank's part of about most calls of each kernel, 0 for all, in a group of the ranks of ep, which it closes.
func (p *process) makeCalls(s *subject, ep transport.Endpoint, most int) error {
	n := ep.Size()
	settings, err := s.settings(n, nil)
	if err != nil {
		return err
	}
	_, native := ep.(transport.Collectives)
	comm, err := ccl.New(p.ctx, ep, ccl.WithSelector(settings))
	if err != nil {
		return err
	}
	if n == p.job.Size && ep.Name() == p.provider.Name && (comm.Nodes() != p.levels || native != (ep.Name() == "mpi")) {
		return fmt.Errorf("a group on %d nodes instead of %d, with collectives: %v", comm.Nodes(), p.levels, native)
	}
	for _, kernel := range s.kernels() {
		g := &group{
			s: kernel, medium: medium{name: ep.Name(), copies: true, scarce: s.params != ""}, settings: settings, ranks: make([]*rank, n),
			nodes: comm.Nodes(), native: native, switches: append(kernel.switches(ep, settings), shortMessage, messagePart),
		}
		r := &rank{g: g, me: ep.Rank(), n: n, comm: comm}
		g.ranks[r.me] = r
		if err := r.makeCalls(p, most); err != nil {
			return fmt.Errorf("transport %s: %w", ep.Name(), err)
		}
	}
	return comm.Close()
}

// makeCalls makes about most calls of a kernel, 0 for all, and a few that it does not support.
func (r *rank) makeCalls(p *process, most int) error {
	all := r.g.launchedJobs()
	can, none := r.g.supported(all)
	if none != nil {
		return r.rejected(all[0])
	}
	if r.g.s.kernel().Native {
		most = (most + 3) / 4 // calls of a library that yields no core take long where ranks outnumber cores
	}
	for _, j := range p.draw(r.g, most, can) {
		if err := do(r.attempt(j), j, neatly); err != nil {
			return err
		}
	}
	cannot := slices.DeleteFunc(all, func(j *calls.Call) bool { return slices.Contains(can, j) })
	for _, j := range p.draw(r.g, 2, cannot) {
		if err := r.admission(j); err != nil {
			return fmt.Errorf("%v: %w", j, err)
		}
	}
	return nil
}

// launchedJobs are calls of all kinds, in place or not and with buffers and blocks at any position.
func (g *group) launchedJobs() []*calls.Call {
	jobs := g.jobs()
	if !g.medium.scarce { // its chunks are long
		jobs = append(jobs, g.edges(g.medium.brief()+1, long)...)
	}
	if g.s.kernel().Native { // NaN and the sign of zero are the library's
		jobs = slices.DeleteFunc(jobs, func(j *calls.Call) bool { return j.Numbers == calls.Odd })
	}
	for i, j := range jobs {
		j.Shift, j.Places = i%4, calls.Places(i/4%4)
		if j.HasPlacing() {
			j.Placing = calls.Placing(i / 2 % 4)
		}
	}
	return jobs
}

// draw returns about most of the jobs, and at least one; all if most is 0. It returns the same ones on all ranks.
func (p *process) draw(g *group, most int, jobs []*calls.Call) (drawn []*calls.Call) {
	if most == 0 || len(jobs) <= most {
		return jobs
	}
	h := fnv.New64a()
	fmt.Fprint(h, g.s.algorithm.Name, g.s.params, g.s.topology, g.s.coll, len(g.ranks), p.seed)
	seed := h.Sum64()
	for i, j := range jobs {
		if calls.Mix(seed+uint64(i))%uint64(len(jobs)) < uint64(most) {
			drawn = append(drawn, j)
		}
	}
	if drawn == nil {
		return jobs[:1]
	}
	return drawn
}

// rejected makes a call of a kernel that supports none in this group. The error says what the group lacks.
func (r *rank) rejected(j *calls.Call) error {
	name := r.g.s.algorithm.Name
	why := lacks[name]
	switch {
	case why == "", name == "mpi" && r.g.native, name == "hierarchical" && r.g.nodes > 1:
		return fmt.Errorf("the kernel supports none of the calls, such as %v", j)
	}
	if err := r.attempt(j).call(context.Background()); !errors.Is(err, ccl.ErrNotImplemented) || !strings.Contains(err.Error(), why) {
		return fmt.Errorf("%v: the call returned %v instead of ErrNotImplemented, %q", j, err, why)
	}
	return r.admission(j)
}
