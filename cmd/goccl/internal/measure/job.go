package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

// Auto as an entry lets the rules of the configuration choose.
const Auto = "auto"

// AllEntries is the entry of the row of a case that was not measured.
const AllEntries = "all"

// Budget bounds the measurement of a case.
type Budget struct {
	// Time is the time for each row of a case, yardsticks included, with the work around
	// the calls.
	Time time.Duration
	// Warmup calls of each row are made first and not counted.
	Warmup int
	// MinCalls of each row are made even if that takes longer, and at most
	// MaxCalls even if time is left.
	MinCalls, MaxCalls int
}

// DefaultBudget measures the default sizes of `goccl bench` in well under a minute.
var DefaultBudget = Budget{Time: 200 * time.Millisecond, Warmup: 5, MinCalls: 10, MaxCalls: 20_000}

// Validate checks the budget.
func (b Budget) Validate() error {
	switch {
	case b.Time <= 0:
		return fmt.Errorf("time %v: a row needs some", b.Time)
	case b.Warmup < 0:
		return fmt.Errorf("warm-up of %d calls: at least 0", b.Warmup)
	case b.MinCalls < 1 || b.MaxCalls < b.MinCalls:
		return fmt.Errorf("%d to %d calls: at least 1, and the minimum first", b.MinCalls, b.MaxCalls)
	}
	return nil
}

// Job is how cases are measured. Its JSON tells another process to measure in the same way.
type Job struct {
	Config *config.Config `json:"-"`
	// File is the file of Config, "" for the one that programs find.
	File string
	// Team measures with the other processes of a launched job; nil: with goroutines.
	Team      *Team    `json:"-"`
	Transport string   // overrides defaults.transport; "": as configured
	Entries   []string // of the configuration, or Auto; none: the configuration's choice
	EntriesBy string   // what names the entries, for messages; "": an option
	Params    []Param  // of entries; see Vary
	Grid      *Grid    // overrides the topology; nil: as configured
	Memory    []string // Private, Alloc; none: Private
	Budget    Budget
}

// The kinds of memory in which calls have their buffers.
const (
	Private = "private" // of the Go heap
	Alloc   = "alloc"   // of ccl.Alloc, which ranks in other processes see in place
)

// memory returns the kinds of memory to measure.
func (j *Job) memory() []string {
	return orOne(j.Memory, Private)
}

// Validate checks the budget and the list of entries; Measure checks that the entries
// exist.
func (j *Job) Validate() error {
	err := errors.Join(noTwins(j.Entries), noTwins(j.Memory), j.Budget.Validate())
	for _, m := range j.Memory {
		if m != Private && m != Alloc {
			err = errors.Join(err, fmt.Errorf("unknown memory %q: want %s or %s", m, Private, Alloc))
		}
	}
	for i, p := range j.Params {
		if slices.ContainsFunc(j.Params[:i], func(q Param) bool { return p.Entry == q.Entry && p.Key == q.Key }) {
			err = errors.Join(err, fmt.Errorf("parameter %s.%s is there twice", p.Entry, p.Key))
		}
	}
	return err
}

// Combine returns a copy of j, without its configuration, for every combination of a configuration file, a
// topology and a transport. An empty list has one member: the one of j.
func (j *Job) Combine(files []string, grids []Grid, transports []string) (jobs []*Job) {
	topologies := []*Grid{}
	for _, g := range grids {
		topologies = append(topologies, &g)
	}
	for _, file := range orOne(files, j.File) {
		for _, grid := range orOne(topologies, j.Grid) {
			for _, transport := range orOne(transports, j.Transport) {
				of := *j
				of.Config, of.File, of.Grid, of.Transport = nil, file, grid, transport
				jobs = append(jobs, &of)
			}
		}
	}
	return jobs
}

// orOne returns list, or one if it is empty.
func orOne[T any](list []T, one T) []T {
	if len(list) == 0 {
		return []T{one}
	}
	return list
}

// String describes the combination that the job is: its configuration, topology and transport.
func (j *Job) String() string {
	text := j.Config.File()
	if j.Grid != nil {
		text += ", " + j.Grid.String()
	}
	if j.Transport != "" {
		text += " over " + j.Transport
	}
	return text
}

// Possible returns the settings of a case, or why the job cannot measure it and may measure others: the configuration
// or the topology does not allow its number of ranks, or it needs too much memory.
func (j *Job) Possible(c Case) (*config.Settings, error) {
	settings, err := j.Resolve(c.Ranks)
	if err != nil {
		return nil, err
	}
	if err := c.fits(AvailableMemory(""), j.memory()); err != nil {
		debug.FreeOSMemory() // memory of the last case
		if err := c.fits(AvailableMemory(""), j.memory()); err != nil {
			return nil, err
		}
	}
	return settings, nil
}

// Unmeasured returns the result of a case that was not measured. Its only row stands for all entries, and tells why.
func (j *Job) Unmeasured(c Case, why Row) Result {
	why.Library, why.Entry = Library, AllEntries
	r := Result{Case: c, Transport: j.Transport, Config: j.Config.File(), Rows: []Row{why}}
	if j.Grid != nil {
		r.Topology = j.Grid.String()
	}
	return r
}

// Measure measures one case. Entries that cannot do it get a Row with the reason;
// so do entries that the configuration does not have, see Check.
func (j *Job) Measure(ctx context.Context, c Case) (Result, error) {
	possible := func() (*config.Settings, error) { return j.Possible(c) }
	if j.Team != nil && j.Team.follows { // rank 0 has checked the memory
		possible = func() (*config.Settings, error) { return j.Resolve(c.Ranks) }
	}
	settings, err := possible()
	if err != nil {
		return Result{}, err
	}
	dtype := ccl.Uint8
	if c.Collective != barrier {
		if err := dtype.UnmarshalText([]byte(c.DType)); err != nil {
			return Result{}, err
		}
	}
	if IsWorkload(c.Collective) {
		return measure(ctx, j, settings, c, floats[float32](1<<24), addWorkload)
	}
	return measureOf[dtype](ctx, j, settings, c)
}

// Resolve returns the configuration of a group of that many ranks. If Auto is measured,
// the rules choose in it, even if defaults.algorithm is set; calls can still select
// other entries.
func (j *Job) Resolve(ranks int) (*config.Settings, error) {
	return j.Config.Resolve(config.Request{
		Algorithm: j.algorithm(),
		Transport: j.Transport,
		Ranks:     ranks,
		RanksFrom: fmt.Sprintf("%d ranks are to be measured", ranks),
	})
}

func (j *Job) algorithm() string {
	switch {
	case slices.Contains(j.Entries, Auto):
		return Auto
	case len(j.variants()) > 0:
		for _, v := range j.variants() {
			if j.has(v.entry) {
				return v.name()
			}
		}
	}
	return ""
}

// has reports whether the configuration has an entry. If it does not, and another one of the same command does, the
// entry is refused here.
func (j *Job) has(entry string) bool { return slices.Contains(j.Config.Entries(), entry) }

// lacks returns why an entry that the configuration does not have is refused.
func (j *Job) lacks(entry string) string {
	return fmt.Sprintf("%s has no entry %s; entries: %s", j.Config.File(), entry, strings.Join(j.Config.Entries(), ", "))
}

// chosen is an entry of a case with its kernel.
type chosen struct {
	entry   string // as requested
	params  string // of the variant
	memory  string // Private or Alloc; "" for a barrier
	options []ccl.CallOption
	ran     string // the entry that the rules chose; "" without rules
	refused string
}

// choose determines the kernels of a case's calls.
func (j *Job) choose(settings *config.Settings, c Case) (all []chosen, err error) {
	switch {
	case c.Collective == barrier:
		return []chosen{{}}, nil
	case IsWorkload(c.Collective):
		return []chosen{{entry: Overlapped}, {entry: AtEnd}, {entry: Views}, {entry: Copies}}, nil
	}
	var coll ccl.Collective
	var dtype ccl.DType
	if err := errors.Join(coll.UnmarshalText([]byte(c.Collective)), dtype.UnmarshalText([]byte(c.DType))); err != nil {
		return nil, err
	}
	op, err := c.op()
	if err != nil {
		return nil, err
	}
	shape := ShapeOf(coll, dtype, op, c.Bytes, settings.Topology())
	undefined := Undefined(coll, op, dtype)
	variants := j.variants()
	if len(variants) == 0 {
		variants = []variant{{entry: settings.Algorithm()}}
	}
	for _, v := range variants {
		entry, force := v.name(), ""
		one := chosen{entry: v.entry, params: v.params}
		if entry != Auto {
			force = entry
			one.options = []ccl.CallOption{ccl.WithAlgorithm(entry)}
		}
		choice, err := settings.Choose(shape, force)
		switch {
		case v.entry != Auto && !j.has(v.entry):
			one.refused = j.lacks(v.entry)
		case undefined != nil:
			one.refused = undefined.Error()
		case err != nil:
			one.refused = err.Error()
			if j.EntriesBy != "" {
				one.refused = strings.Replace(one.refused, "(chosen by option)", "(chosen by "+j.EntriesBy+")", 1)
			}
		case entry == Auto && c.Ranks > 1: // one rank uses no algorithm
			one.ran = choice.Entry
		}
		for _, one.memory = range j.memory() {
			all = append(all, one)
		}
	}
	return all, nil
}

func (c Case) op() (op ccl.Op, err error) {
	if c.Op != "" {
		err = op.UnmarshalText([]byte(c.Op))
	}
	return op, err
}

// fits returns an error if the buffers exceed the available memory, since the kernel would
// kill the process. have is the available memory in bytes, 0 if unknown; the yardsticks use
// private memory.
func (c Case) fits(have int, memory []string) error {
	const mib = 1 << 20
	need := c.Memory()
	if slices.Contains(memory, Alloc) {
		need *= 2
	}
	if have > 0 && need > float64(have) {
		return fmt.Errorf("%s of %v needs %.0f MiB of memory, and %d are available: measure shorter vectors, or fewer ranks",
			c.Title(), ccl.ByteSize(c.Bytes), need/mib, have/mib)
	}
	return nil
}

// Memory returns the length of the buffers of all ranks in bytes, which can exceed an
// integer.
func (c Case) Memory() float64 {
	of := func(input, result float64) float64 { // the input of peer copies included
		if c.InPlace {
			return float64(c.buckets()) * (2*max(input, result) + input)
		}
		return float64(c.buckets()) * (2*input + max(input, result))
	}
	input, ranks := float64(c.Bytes), float64(c.Ranks)
	if IsWorkload(c.Collective) { // one vector, the buckets of two Reducers, and the gradients of one
		return ranks * 4 * input
	}
	switch c.collective() {
	case ccl.CollAllGather:
		return ranks * of(input, ranks*input)
	case ccl.CollGather:
		return of(input, ranks*input) + (ranks-1)*of(input, 0)
	}
	return ranks * of(input, input)
}

// measure hosts the ranks of a case and returns its rows.
func measure[T ccl.Element](ctx context.Context, j *Job, settings *config.Settings, c Case, e elements[T], contend func(*bench[T], []chosen) error) (Result, error) {
	entries, err := j.choose(settings, c)
	if err != nil {
		return Result{}, err
	}
	result := Result{Case: c, Topology: settings.Topology().Kind().String(), Config: j.Config.File()}
	if j.Grid != nil {
		result.Topology = j.Grid.String()
	}
	if !slices.ContainsFunc(entries, func(e chosen) bool { return e.refused == "" }) {
		for _, e := range entries {
			result.Rows = append(result.Rows, e.row())
		}
		return result, nil
	}
	join := func(comm *ccl.Communicator) (*bench[T], error) {
		return newBench(c, j.Budget, e, comm, func(b *bench[T]) error { return contend(b, entries) })
	}
	runtime.GC() // so that garbage of other cases is not collected during this one
	switch {
	case j.Team == nil:
		err = dist.Spawn(func(ctx context.Context, _ int) error {
			return part(ctx, j, entries, join, &result)
		}, dist.WithRanks(c.Ranks), dist.WithSpawnContext(ctx))
	case j.Team.follows:
		err = part(ctx, j, entries, join, &result)
	default:
		if _, err = tell(&request{*j, c}); err == nil {
			err = part(ctx, j, entries, join, &result)
		}
		j.Team.broken = err != nil
	}
	if ctx.Err() != nil && (j.Team == nil || !j.Team.broken) {
		return Result{}, context.Cause(ctx)
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s of %v: %w", c.Title(), ccl.ByteSize(c.Bytes), err)
	}
	return result, nil
}

// part is one rank's part in a measurement, in a group of its own. Rank 0 sets the result.
func part[T ccl.Element](ctx context.Context, j *Job, entries []chosen, join func(*ccl.Communicator) (*bench[T], error), result *Result) error {
	if err := dist.InitProcessGroup("ccl", dist.WithConfig(j.Config), dist.WithAlgorithm(j.algorithm()), dist.WithTransport(j.Transport)); err != nil {
		return err
	}
	group, err := dist.Default()
	if err != nil {
		return err
	}
	b, err := join(group.Communicator())
	if err != nil {
		return err
	}
	if err := b.work(ctx); err != nil {
		return err
	}
	if b.rank == 0 {
		result.Transport, result.Rows, result.Company = group.Communicator().Transport(), b.rows(entries), b.company()
	}
	return errors.Join(b.close(), dist.DestroyProcessGroup())
}
