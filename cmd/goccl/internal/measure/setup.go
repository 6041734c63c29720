package measure

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
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

// Setup is how cases are measured. By its JSON another process measures in the same way.
type Setup struct {
	Config *config.Config `json:"-"`
	// File is the file of Config, "" for the one that programs find.
	File      string
	Transport string   // overrides defaults.transport; "": as configured
	Entries   []string // of the configuration, or Auto; none: the configuration's choice
	EntriesBy string   // a flag or a line that names the entries, for messages; "": an option
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
func (s *Setup) memory() []string { return orElse(s.Memory, Private) }

// Validate checks the budget and the list of entries; Measure checks that the entries
// exist.
func (s *Setup) Validate() error {
	err := errors.Join(CheckTwins(s.Entries), CheckTwins(s.Memory), s.Budget.Validate())
	for _, m := range s.Memory {
		if m != Private && m != Alloc {
			err = errors.Join(err, fmt.Errorf("unknown memory %q: want %s or %s", m, Private, Alloc))
		}
	}
	for i, p := range s.Params {
		if slices.ContainsFunc(s.Params[:i], func(q Param) bool { return p.Entry == q.Entry && p.Key == q.Key }) {
			err = errors.Join(err, fmt.Errorf("parameter %s.%s is there twice", p.Entry, p.Key))
		}
	}
	return err
}

// Combine returns a copy of j, without its configuration, for every combination of a configuration
// file, a topology and a transport. An empty list has one member: the one of j.
func (s *Setup) Combine(files []string, grids []Grid, transports []string) (jobs []*Setup) {
	topologies := []*Grid{}
	for _, g := range grids {
		topologies = append(topologies, &g)
	}

	for _, file := range orElse(files, s.File) {
		for _, grid := range orElse(topologies, s.Grid) {
			for _, transport := range orElse(transports, s.Transport) {
				of := *s
				of.Config, of.File, of.Grid, of.Transport = nil, file, grid, transport
				jobs = append(jobs, &of)
			}
		}
	}
	return jobs
}

// orElse returns list, or the value if it is empty.
func orElse[T any](list []T, value T) []T {
	if len(list) == 0 {
		return []T{value}
	}
	return list
}

// String describes the combination that the job is: its configuration, topology and transport.
func (s *Setup) String() string {
	text := s.Config.File()
	if s.Grid != nil {
		text += ", " + s.Grid.String()
	}
	if s.Transport != "" {
		text += " over " + s.Transport
	}
	return text
}

// Possible returns why the setup cannot measure a case and may measure others: the configuration or
// the topology does not allow its number of ranks, or it needs too much memory.
func (s *Setup) Possible(c Case) error {
	if _, err := s.Resolve(c.Ranks); err != nil {
		return err
	}
	if c.checkMemory(AvailableMemory(""), s.memory()) == nil {
		return nil
	}
	debug.FreeOSMemory() // memory of the last case
	return c.checkMemory(AvailableMemory(""), s.memory())
}

// Unmeasured returns the result of a case that was not measured. Its only row stands for all
// entries, and says why.
func (s *Setup) Unmeasured(c Case, why Row) Result {
	why.Library, why.Entry = Library, AllEntries
	r := Result{Case: c, Transport: s.Transport, Config: s.Config.File(), Rows: []Row{why}}
	if s.Grid != nil {
		r.Topology = s.Grid.String()
	}
	return r
}

// Resolve returns the configuration of a group of that many ranks. If Auto is measured,
// the rules choose in it, even if defaults.algorithm is set; calls can still select
// other entries.
func (s *Setup) Resolve(ranks int) (*config.Settings, error) {
	return s.Config.Resolve(config.Request{
		Algorithm: s.algorithm(),
		Transport: s.Transport,
		Ranks:     ranks,
		RanksFrom: fmt.Sprintf("%d ranks are to be measured", ranks),
	})
}

func (s *Setup) algorithm() string {
	if slices.Contains(s.Entries, Auto) {
		return Auto
	}
	for _, v := range s.variants() {
		if s.has(v.entry) {
			return v.name()
		}
	}
	return ""
}

// has reports whether the configuration has an entry. If it does not, and another one of the same
// command does, the entry is refused here.
func (s *Setup) has(entry string) bool { return slices.Contains(s.Config.Entries(), entry) }

// lacks returns why an entry that the configuration does not have is refused.
func (s *Setup) lacks(entry string) string {
	return fmt.Sprintf("%s has no entry %s; entries: %s", s.Config.File(), entry, strings.Join(s.Config.Entries(), ", "))
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
func (s *Setup) choose(settings *config.Settings, c Case) (all []chosen, err error) {
	switch {
	case c.Collective == barrier:
		return []chosen{{}}, nil
	case IsWorkload(c.Collective):
		return []chosen{{entry: Overlapped}, {entry: AtEnd}, {entry: Views}, {entry: Copies}}, nil
	}
	op, err := c.op()
	if err != nil {
		return nil, err
	}

	shape := ShapeOf(c.collective(), c.dtype(), op, c.Bytes, settings.Topology())
	variants := s.variants()
	if len(variants) == 0 {
		variants = []variant{{entry: settings.Algorithm()}}
	}
	for _, v := range variants {
		k := s.chooseFor(settings, shape, v)
		for _, k.memory = range s.memory() {
			all = append(all, k)
		}
	}
	return all, nil
}

// chooseFor determines the kernel of a variant.
func (s *Setup) chooseFor(settings *config.Settings, shape ccl.Shape, v variant) chosen {
	k := chosen{entry: v.entry, params: v.params}
	force := ""
	if v.entry != Auto {
		force = v.name()
		k.options = []ccl.CallOption{ccl.WithAlgorithm(force)}
	}
	choice, err := settings.Choose(shape, force)
	var undefined error
	if shape.Collective.Traits().Reduces {
		undefined = shape.Op.Check(shape.Collective, shape.DType)
	}

	switch {
	case v.entry != Auto && !s.has(v.entry):
		k.refused = s.lacks(v.entry)
	case undefined != nil:
		k.refused = undefined.Error()
	case err != nil:
		if e, ok := errors.AsType[*config.UnsupportedError](err); ok && force != "" {
			e.ChosenBy = cmp.Or(s.EntriesBy, e.ChosenBy)
		}
		k.refused = err.Error()
	case v.entry == Auto && shape.Ranks > 1: // one rank uses no algorithm
		k.ran = choice.Entry
	}
	return k
}

func (c Case) op() (op ccl.Op, err error) {
	if c.Op != "" {
		err = op.UnmarshalText([]byte(c.Op))
	}
	return op, err
}

// checkMemory returns an error if the buffers exceed the available memory, since the kernel would
// kill the process.
//
// have is the available memory in bytes, 0 if unknown; the yardsticks use private memory.
func (c Case) checkMemory(have int, memory []string) error {
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
	switch coll := c.collective(); {
	case coll.Traits().Input != ccl.RankBlock:
		return ranks * of(input, input)
	case coll.Traits().Rooted:
		return of(input, ranks*input) + (ranks-1)*of(input, 0)
	}
	return ranks * of(input, ranks*input)
}
