package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/chart"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/transport"
)

// benchCommand is `goccl bench`. The default of every flag is its zero value, so that
// Validate sees which flags were given; Run fills in the real defaults.
type benchCommand struct {
	Args       []string        `arg:"" optional:"" name:"collective" help:"Collectives, by the names of ccl.yaml, and barrier; by default all_reduce. With --compare: two files."`
	Workload   []string        `placeholder:"NAME" help:"Measure steps of data parallel training, with the gradients of published networks, instead of collectives: resnet50, bert_base, vgg16, gpt2_small, or lenet5, a small one."`
	Begin      measure.Size    `short:"b" placeholder:"4" help:"Length of one rank's shortest input, in bytes: 4, 1K, 64KiB, 256M. K, M and G are powers of two. Sizes are rounded up to whole elements, and inputs that are scattered down to whole blocks, but to no less than one element per block."`
	End        measure.Size    `short:"e" placeholder:"64M" help:"Length of the longest."`
	Factor     int             `short:"f" placeholder:"4" help:"Ratio of each length to the previous one."`
	Ranks      []int           `placeholder:"N" help:"World sizes; by default the configured one, else one rank for each usable core, at least 2."`
	Algorithm  []string        `placeholder:"ENTRY" help:"Entries of the configuration to compare; auto: what its rules choose. By default what a program gets."`
	Config     []string        `placeholder:"FILE" help:"Configuration files; by default what a program finds: $$GOCCL_CONFIG, ./ccl.yaml, the built-in one."`
	Transport  []string        `placeholder:"NAME" help:"Override defaults.transport, like dist.WithTransport: local measures goroutines, shm processes, which the command starts."`
	Topology   []measure.Grid  `placeholder:"KIND" help:"Override the topology: ring_1d, torus_2d, mesh_2d_no_wrap; extents of the 2-D kinds as in torus_2d:3x2, else a square."`
	Param      []measure.Param `sep:"none" placeholder:"ENTRY.KEY=VALUE,..." help:"Measure an entry with each of these values of a parameter, as in ring.chunk=64KiB,1MiB. Several flags: all combinations."`
	Memory     []string        `placeholder:"KIND" help:"Where the buffers are: private, the default, or alloc, memory of ccl.Alloc."`
	DType      []string        `name:"dtype" placeholder:"NAME" help:"Element types; by default float32."`
	Op         []string        `placeholder:"NAME" help:"Operations; by default sum."`
	InPlace    bool            `help:"Measure in place: the result replaces the input, or the input is part of the result; the default."`
	OutOfPlace bool            `help:"Measure with separate buffers. Both flags: both."`
	Root       int             `placeholder:"RANK" help:"Root of collectives that have one; by default 0."`
	Consume    bool            `help:"The time includes reading the whole result."`
	Compute    time.Duration   `placeholder:"TIME" help:"Let every rank compute for about that long before the calls, as programs do; by default all ranks call at the same time. With --workload: the time of a backward pass, by default 50ms."`
	Jitter     *float64        `placeholder:"0.1" help:"With --compute: share by which the computing time varies, between ranks and from step to step."`
	Buckets    int             `placeholder:"N" help:"Calls in a row, each with buffers of its own, as in a step of training; by default 4 with --compute, else 1."`
	Time       time.Duration   `placeholder:"200ms" help:"Time for each row, including the work between calls; yardsticks are rows as well."`
	Warmup     *int            `placeholder:"5" help:"Calls of each row that are made first and not counted."`
	MinCalls   int             `placeholder:"10" help:"Calls of each row, even if they take longer."`
	MaxCalls   int             `placeholder:"20000" help:"Calls of each row, even if there is time left."`
	Markdown   bool            `help:"Print the tables as Markdown."`
	CSV        string          `name:"csv" placeholder:"FILE" help:"Write all rows as CSV."`
	JSON       string          `name:"json" placeholder:"FILE" help:"Write everything as JSON, for --compare."`
	Plot       string          `placeholder:"FILE" help:"Draw latency and bandwidth over the length: an .svg or a .png."`
	Compare    bool            `help:"Compare two files of --json; measures nothing."`
	Sweep      string          `placeholder:"FILE" help:"Measure the cells of a sweep file, and write a report; continues after an interruption."`
	Out        string          `placeholder:"DIR" help:"With --sweep: directory of the results; by default NAME-results for NAME.yaml."`
	Fresh      bool            `help:"With --sweep: discard existing results."`
	Serve      bool            `hidden:"" help:"As a rank of a launcher: measure what standard input asks for."`
}

// Validate checks combinations of flags.
func (c *benchCommand) Validate() error {
	switch {
	case c.Compare:
		if !c.only(func(rest *benchCommand) { rest.Args, rest.Compare = nil, false }) || len(c.Args) != 2 {
			return errors.New("--compare takes two files of --json, and no other flag: goccl bench --compare a.json b.json")
		}
		return nil
	case c.Sweep != "":
		if !c.only(func(rest *benchCommand) { rest.Sweep, rest.Out, rest.Fresh = "", "", false }) {
			return errors.New("--sweep: the file determines what is measured; only --out and --fresh can be combined with it")
		}
		return nil
	case c.Out != "" || c.Fresh:
		return errors.New("--out and --fresh need --sweep")
	case len(c.Workload) > 0 && !c.only(func(rest *benchCommand) {
		rest.Workload, rest.Ranks, rest.Config, rest.Transport, rest.Topology, rest.Compute = nil, nil, nil, nil, nil, 0
		rest.Time, rest.Warmup, rest.MinCalls, rest.MaxCalls, rest.CSV, rest.JSON, rest.Plot, rest.Markdown = 0, nil, 0, 0, "", "", "", false
	}):
		return errors.New("--workload: the network determines what is measured; only --ranks, --config, --transport, --topology, --compute, --time, --warmup, --min-calls, --max-calls, --markdown, --csv, --json and --plot can be combined with it")
	case c.Compute < 0:
		return fmt.Errorf("--compute %v: want 0 or more", c.Compute)
	case c.Time < 0:
		return fmt.Errorf("--time %v: want more than 0", c.Time)
	case c.Factor == 1 || c.Factor < 0:
		return fmt.Errorf("--factor %d: want at least 2", c.Factor)
	case c.Begin > 0 && c.End > 0 && c.Begin > c.End:
		return fmt.Errorf("--begin %v is more than --end %v", ccl.ByteSize(c.Begin), ccl.ByteSize(c.End))
	case c.Plot != "" && !slices.Contains([]string{".svg", ".png"}, filepath.Ext(c.Plot)):
		return fmt.Errorf("--plot %s: the name must end in .svg or .png", c.Plot)
	}
	job, plan := measure.Job{Entries: c.Algorithm, Params: c.Param, Memory: c.Memory, Budget: c.budget()}, c.plan()
	return errors.Join(job.Validate(), plan.Validate(), noTwins("--config", c.Config), noTwins("--transport", c.Transport), noTwins("--topology", c.Topology))
}

// only reports whether no flags are given except those that clear resets.
func (c *benchCommand) only(clear func(*benchCommand)) bool {
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

func (c *benchCommand) budget() measure.Budget {
	b := measure.DefaultBudget
	b.Time = cmp.Or(c.Time, b.Time)
	b.MinCalls = cmp.Or(c.MinCalls, min(b.MinCalls, cmp.Or(c.MaxCalls, b.MinCalls)))
	b.MaxCalls = cmp.Or(c.MaxCalls, max(b.MaxCalls, b.MinCalls))
	if c.Warmup != nil {
		b.Warmup = *c.Warmup
	}
	return b
}

// Run runs the command. The first interrupt ends it between two calls; later ones have
// their usual effect.
func (c *benchCommand) Run(ctx context.Context, stdout io.Writer, bars bars) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	context.AfterFunc(ctx, stop)
	defer stop()
	underLauncher, err := c.launchedRanks()
	switch {
	case err != nil:
		return err
	case c.Compare:
		return compareFiles(stdout, c.Args[0], c.Args[1])
	case underLauncher > 0 && c.Sweep != "":
		return errors.New("goccl bench --sweep starts the ranks that it measures: start it without the launcher")
	case c.Serve && underLauncher == 0:
		return errors.New("--serve is for ranks that goccl bench has started")
	case c.Serve:
		return launched(func(r *ranks) error { return r.answer(ctx, os.Stdin, stdout) })
	case underLauncher > 0:
		return launched(func(r *ranks) error { return c.measure(ctx, stdout, bars, r, underLauncher) })
	}
	r := &ranks{stderr: bars.Writer}
	if c.Sweep != "" {
		err = c.sweep(ctx, stdout, bars, r)
	} else {
		err = c.measure(ctx, stdout, bars, r, 0)
	}
	return errors.Join(err, r.close())
}

// measure measures what the flags ask for. underLauncher is the launcher's number of ranks, or 0.
func (c *benchCommand) measure(ctx context.Context, stdout io.Writer, bars bars, r *ranks, underLauncher int) error {
	jobs, found, err := c.jobs()
	if err != nil {
		return err
	}
	plan := c.plan()
	if len(plan.Ranks) == 0 {
		plan.Ranks = []int{cmp.Or(underLauncher, defaultRanks(jobs[0].Config, "", 2))}
		if err := plan.Validate(); err != nil { // the root
			return err
		}
	}
	for _, path := range []string{c.CSV, c.JSON, c.Plot} {
		if err := checkWritable(path); err != nil {
			return err
		}
	}
	document := measure.NewDocument(found)
	table := newBenchTable(stdout, bars, document, c.Markdown)
	for _, job := range jobs {
		if err = table.measureAll(plan.Cases(), func(c measure.Case) (measure.Result, error) { return r.measure(ctx, job, c) }); err != nil {
			break
		}
	}
	// Results are written even if later measurements failed or were interrupted.
	return errors.Join(err, c.write(stdout, document), judge(document.Results))
}

// jobs returns the combinations of configuration, topology and transport that the flags ask for, and
// describes the configurations.
func (c *benchCommand) jobs() (jobs []*measure.Job, found measure.Config, err error) {
	job := &measure.Job{Entries: c.Algorithm, Params: c.Param, Memory: c.Memory, Budget: c.budget(), EntriesBy: "--algorithm"}
	if len(c.Algorithm) == 0 {
		job.EntriesBy = "--param"
	}
	jobs = job.Combine(c.Config, c.Topology, c.Transport)
	found, err = loadJobs(jobs)
	if mistake, ok := errors.AsType[*measure.Mistake](err); ok {
		err = usageError{mistake}
	}
	return jobs, found, err
}

// loadJobs loads the configurations of jobs, and describes them. errors.As finds a *measure.Mistake in what jobs
// have in common.
func loadJobs(jobs []*measure.Job) (found measure.Config, err error) {
	var files []string
	for _, job := range jobs {
		if found, err = loadJob(job); err != nil {
			return found, err
		}
		if !slices.Contains(files, found.File) {
			files = append(files, found.File)
		}
	}
	found.File = strings.Join(files, ", ")
	if err := measure.Check(jobs); err != nil {
		return found, err
	}
	for _, job := range jobs {
		if job.Transport == "" || job.Transport == "auto" {
			continue
		}
		if _, err := transport.Lookup(job.Transport); err != nil {
			return found, &measure.Mistake{Of: measure.OfTransport, Value: job.Transport, Message: err.Error()}
		}
	}
	return found, nil
}

// noTwins returns an error if a flag names a value twice.
func noTwins[T comparable](flag string, values []T) error {
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			return fmt.Errorf("%s: %v is there twice", flag, v)
		}
	}
	return nil
}

// defaultRanks is the number of ranks of dist.Spawn, at least `least` unless the configuration
// sets it. algorithm overrides defaults.algorithm unless it is "".
func defaultRanks(cfg *config.Config, algorithm string, least int) int {
	if n, _, ok := cfg.WorldSize(algorithm); ok {
		return n
	}
	return max(least, runtime.GOMAXPROCS(0))
}

// write writes the files that the flags ask for.
func (c *benchCommand) write(stdout io.Writer, d *measure.Document) error {
	if len(d.Results) == 0 {
		return nil
	}
	if c.Markdown && c.CSV+c.JSON+c.Plot != "" {
		fmt.Fprintln(stdout) // the names of the files are a paragraph of their own
	}
	return writeFiles(stdout,
		output{c.CSV, func(path string) error { return writeCSV(path, d.Results) }},
		output{c.JSON, d.WriteFile},
		output{c.Plot, func(path string) error { return chart.Save(path, d) }})
}

// output is a file that a command writes. The path "" stands for none.
type output struct {
	path  string
	write func(path string) error
}

// writeFiles writes the files and prints their names. An error does not keep it from writing
// the others.
func writeFiles(stdout io.Writer, files ...output) error {
	var all []error
	for _, f := range files {
		if f.path == "" {
			continue
		}
		err := f.write(f.path)
		if err == nil {
			_, err = fmt.Fprintf(stdout, "written: %s\n", f.path)
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

// checkWritable returns an error if a file cannot be written later. It changes no file, and leaves none that did not
// exist. The path "" stands for none.
func checkWritable(path string) error {
	if path == "" {
		return nil
	}
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	err = f.Close()
	if errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

func writeCSV(path string, results []measure.Result) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(measure.WriteCSV(f, results), f.Close())
}

// judge returns an error if results are wrong or nothing was measured.
func judge(results []measure.Result) error {
	wrong, measured := 0, false
	for _, r := range results {
		for _, row := range r.Rows {
			measured = measured || row.Calls > 0
			if row.Errors > 0 {
				wrong++
			}
		}
	}
	switch {
	case wrong > 0:
		return fmt.Errorf("%d rows have wrong results", wrong)
	case len(results) > 0 && !measured:
		for _, row := range results[0].Rows {
			if reason := cmp.Or(row.Refused, row.Failed); reason != "" {
				return fmt.Errorf("nothing was measured: %s", reason)
			}
		}
	}
	return nil
}
