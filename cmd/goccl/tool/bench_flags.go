package tool

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// benchCommand is `goccl bench`. The default of every flag is its zero value, so that Validate sees
// which flags were given; Run fills in the real defaults.
type benchCommand struct {
	Args     []string `arg:"" optional:"" name:"collective" help:"Collectives, by the names of ccl.yaml, and barrier; by default all_reduce. With --compare: two files."`
	Workload []string `placeholder:"NAME" help:"Measure steps of data parallel training, with the gradients of published networks, instead of collectives: resnet50, bert_base, vgg16, gpt2_small, or lenet5, a small one."`
	lengthFlags
	Ranks []int `placeholder:"N" help:"World sizes; by default the configured one, else one rank for each usable core, at least 2."`
	setupFlags
	callFlags
	computeFlags
	budgetFlags
	outputFlags
	Compare bool `help:"Compare two files of --json; measures nothing."`
	sweepFlags
	Serve string `hidden:"" help:"As a rank that goccl bench has started: measure a case."`
}

// lengthFlags are the lengths of calls.
type lengthFlags struct {
	Begin  measure.Size `short:"b" placeholder:"4" help:"Length of one rank's shortest input, in bytes: 4, 1K, 64KiB, 256M. K, M and G are powers of two. Sizes are rounded up to whole elements, and inputs that are scattered down to whole blocks, but to no less than one element per block."`
	End    measure.Size `short:"e" placeholder:"64M" help:"Length of the longest."`
	Factor int          `short:"f" placeholder:"4" help:"Ratio of each length to the previous one."`
}

// setupFlags are how calls are made.
type setupFlags struct {
	Algorithm []string        `placeholder:"ENTRY" help:"Entries of the configuration to compare; auto: what its rules choose. By default what a program gets."`
	Config    []string        `placeholder:"FILE" help:"Configuration files; by default what a program finds: $$GOCCL_CONFIG, ./ccl.yaml, the built-in one."`
	Transport []string        `placeholder:"NAME" help:"Override defaults.transport, like dist.WithTransport: local measures goroutines, shm processes, which the command starts."`
	Topology  []measure.Grid  `placeholder:"KIND" help:"Override the topology: ring_1d, torus_2d, mesh_2d_no_wrap; extents of the 2-D kinds as in torus_2d:3x2, else a square."`
	Param     []measure.Param `sep:"none" placeholder:"ENTRY.KEY=VALUE,..." help:"Measure an entry with each of these values of a parameter, as in ring.chunk=64KiB,1MiB. Several flags: all combinations."`
	Memory    []string        `placeholder:"KIND" help:"Where the buffers are: private, the default, or alloc, memory of ccl.Alloc."`
}

// callFlags are what calls do.
type callFlags struct {
	DType      []string `name:"dtype" placeholder:"NAME" help:"Element types; by default float32."`
	Op         []string `placeholder:"NAME" help:"Operations; by default sum."`
	InPlace    bool     `help:"Measure in place: the result replaces the input, or the input is part of the result; the default."`
	OutOfPlace bool     `help:"Measure with separate buffers. Both flags: both."`
	Root       int      `placeholder:"RANK" help:"Root of collectives that have one; by default 0."`
	Consume    bool     `help:"The time includes reading the whole result."`
}

// computeFlags are what ranks do between calls.
type computeFlags struct {
	Compute time.Duration `placeholder:"TIME" help:"Let every rank compute for about that long before the calls, as programs do; by default all ranks call at the same time. With --workload: the time of a backward pass, by default 50ms."`
	Jitter  *float64      `placeholder:"0.1" help:"With --compute: share by which the computing time varies, between ranks and from step to step."`
	Buckets int           `placeholder:"N" help:"Calls in a row, each with buffers of its own, as in a step of training; by default 4 with --compute, else 1."`
}

// budgetFlags are how long is measured.
type budgetFlags struct {
	Time     time.Duration `placeholder:"200ms" help:"Time for each row, including the work between calls; yardsticks are rows as well."`
	Warmup   *int          `placeholder:"5" help:"Calls of each row that are made first and not counted."`
	MinCalls int           `placeholder:"10" help:"Calls of each row, even if they take longer."`
	MaxCalls int           `placeholder:"20000" help:"Calls of each row, even if there is time left."`
}

// outputFlags are where results go.
type outputFlags struct {
	Markdown bool   `help:"Print the tables as Markdown."`
	CSV      string `name:"csv" placeholder:"FILE" help:"Write all rows as CSV."`
	JSON     string `name:"json" placeholder:"FILE" help:"Write everything as JSON, for --compare."`
	Plot     string `placeholder:"FILE" help:"Draw latency and bandwidth over the length: an .svg."`
}

// sweepFlags are those of `goccl bench --sweep`.
type sweepFlags struct {
	Sweep string `placeholder:"FILE" help:"Measure the cells of a sweep file, and write a report; continues after an interruption."`
	Out   string `placeholder:"DIR" help:"With --sweep: directory of the results; by default NAME-results for NAME.yaml."`
	Fresh bool   `help:"With --sweep: discard existing results."`
}

// Validate checks combinations of flags.
func (c *benchCommand) Validate() error {
	switch {
	case c.Compare:
		if !c.hasOnly(func(rest *benchCommand) { rest.Args, rest.Compare = nil, false }) || len(c.Args) != 2 {
			return errors.New("--compare takes two files of --json, and no other flag: goccl bench --compare a.json b.json")
		}
		return nil
	case c.Sweep != "":
		if !c.hasOnly(func(rest *benchCommand) { rest.sweepFlags = sweepFlags{} }) {
			return errors.New("--sweep: the file determines what is measured; only --out and --fresh can be combined with it")
		}
		return nil
	// Flags that need another one, or exclude others.
	case c.Out != "" || c.Fresh:
		return errors.New("--out and --fresh need --sweep")
	case len(c.Workload) > 0 && !c.hasOnly(func(rest *benchCommand) {
		rest.Workload, rest.Ranks, rest.Config, rest.Transport, rest.Topology, rest.Compute = nil, nil, nil, nil, nil, 0
		rest.budgetFlags, rest.outputFlags = budgetFlags{}, outputFlags{}
	}):
		return errors.New("--workload: the network determines what is measured; only --ranks, --config, --transport, --topology, --compute, --time, --warmup, --min-calls, --max-calls, --markdown, --csv, --json and --plot can be combined with it")
	}
	return c.checkValues()
}

// checkValues checks the values of flags that say what is measured.
func (c *benchCommand) checkValues() error {
	switch {
	case c.Compute < 0:
		return fmt.Errorf("--compute %v: want 0 or more", c.Compute)
	case c.Time < 0:
		return fmt.Errorf("--time %v: want more than 0", c.Time)
	case c.Factor == 1 || c.Factor < 0:
		return fmt.Errorf("--factor %d: want at least 2", c.Factor)
	case c.Begin > 0 && c.End > 0 && c.Begin > c.End:
		return fmt.Errorf("--begin %v is more than --end %v", ccl.ByteSize(c.Begin), ccl.ByteSize(c.End))
	case c.Plot != "" && filepath.Ext(c.Plot) != ".svg":
		return fmt.Errorf("--plot %s: the name must end in .svg", c.Plot)
	}

	setup, plan := c.setup(), c.plan()
	return errors.Join(setup.Validate(), plan.Validate(), ofFlag("--config", measure.CheckTwins(c.Config)),
		ofFlag("--transport", measure.CheckTwins(c.Transport)), ofFlag("--topology", measure.CheckTwins(c.Topology)))
}

// ofFlag returns an error with the flag that it is about, or nil.
func ofFlag(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// hasOnly reports whether no flags are given except those that clear resets.
func (c *benchCommand) hasOnly(clear func(*benchCommand)) bool {
	rest := *c
	clear(&rest)
	return reflect.DeepEqual(rest, benchCommand{})
}

// plan returns the measurements that the flags ask for. Without --ranks it has no ranks.
func (c *benchCommand) plan() measure.Plan {
	if len(c.Workload) > 0 {
		return measure.Plan{Workloads: c.Workload, Ranks: c.Ranks, Compute: cmp.Or(c.Compute, measure.DefaultBackward)}
	}
	begin := cmp.Or(c.Begin, min(4, cmp.Or(c.End, 4)))
	end := cmp.Or(c.End, max(64<<20, begin))
	p := measure.Plan{
		Collectives: orElse(c.Args, ccl.CollAllReduce.String()),
		DTypes:      orElse(c.DType, ccl.Float32.String()),
		Ops:         orElse(c.Op, ccl.Sum.String()),
		Ranks:       c.Ranks,
		Root:        c.Root,
		Consume:     c.Consume,
		Bytes:       measure.Sizes(begin, end, cmp.Or(c.Factor, 4)),
	}

	p.SetCompute(c.Compute, c.Jitter, c.Buckets)
	if c.InPlace || !c.OutOfPlace {
		p.InPlace = append(p.InPlace, true)
	}
	if c.OutOfPlace {
		p.InPlace = append(p.InPlace, false)
	}
	return p
}

// setup returns how the flags ask to measure, before the values of --config, --topology and
// --transport are combined.
func (c *benchCommand) setup() *measure.Setup {
	s := &measure.Setup{Entries: c.Algorithm, Params: c.Param, Memory: c.Memory, Budget: c.budget(), EntriesBy: "--algorithm"}
	if len(c.Algorithm) == 0 {
		s.EntriesBy = "--param"
	}
	return s
}

func (f *budgetFlags) budget() measure.Budget {
	b := measure.DefaultBudget
	b.Time = cmp.Or(f.Time, b.Time)
	b.MinCalls = cmp.Or(f.MinCalls, min(b.MinCalls, cmp.Or(f.MaxCalls, b.MinCalls)))
	b.MaxCalls = cmp.Or(f.MaxCalls, max(b.MaxCalls, b.MinCalls))
	if f.Warmup != nil {
		b.Warmup = *f.Warmup
	}
	return b
}
