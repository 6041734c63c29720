package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/chart"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/transport"
)

// Run runs the command. The first interrupt ends it between two calls; later ones have their usual
// effect.
func (c *benchCommand) Run(ctx context.Context, stdout io.Writer, stderr stderr) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	context.AfterFunc(ctx, stop)
	defer stop()
	launched, err := c.launchedRanks()

	switch {
	case err != nil:
		return err
	case c.Compare:
		return compareFiles(stdout, c.Args[0], c.Args[1])
	case launched > 0 && c.Sweep != "":
		return errors.New("goccl bench --sweep starts the ranks that it measures: start it without the launcher")
	case c.Serve != "" && launched == 0:
		return errors.New("--serve is for ranks that goccl bench has started")
	// What this process measures, or lets others measure.
	case c.Serve != "":
		return c.serve()
	case launched > 0:
		return measureLaunched(func(r *ranks) error { return c.measure(ctx, stdout, stderr, r, launched) })
	case c.Sweep != "":
		return c.sweep(ctx, stdout, stderr)
	}
	return c.measure(ctx, stdout, stderr, &ranks{stderr: stderr}, 0)
}

// measure measures what the flags ask for. launched is the launcher's number of ranks, or 0.
func (c *benchCommand) measure(ctx context.Context, stdout io.Writer, stderr stderr, r *ranks, launched int) error {
	setups := c.setup().Combine(c.Config, c.Topology, c.Transport)
	found, err := loadSetups(setups)
	if mistake, ok := errors.AsType[*measure.Mistake](err); ok {
		err = usageError{mistake}
	}
	if err != nil {
		return err
	}
	plan := c.plan()
	if len(plan.Ranks) == 0 {
		plan.Ranks = []int{cmp.Or(launched, defaultRanks(setups[0].Config, "", 2))}
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
	table := newBenchTable(stdout, stderr, document, c.Markdown)
	for _, s := range setups {
		if err = table.measureAll(plan.Cases(), func(c measure.Case) (measure.Result, error) { return r.measure(ctx, s, c) }); err != nil {
			break
		}
	}
	// Results are written even if later measurements failed or were interrupted.
	return errors.Join(err, c.write(stdout, document), judge(document.Results))
}

// loadSetups loads the configurations of setups, and describes them. errors.As finds a
// *measure.Mistake in what setups have in common.
func loadSetups(setups []*measure.Setup) (found measure.Config, err error) {
	var files []string
	for _, s := range setups {
		if found, err = loadConfigOf(s); err != nil {
			return found, err
		}
		if !slices.Contains(files, found.File) {
			files = append(files, found.File)
		}
	}

	found.File = strings.Join(files, ", ")
	if err := measure.Check(setups); err != nil {
		return found, err
	}

	for _, s := range setups {
		if s.Transport == "" || s.Transport == "auto" {
			continue
		}
		if _, err := transport.Lookup(s.Transport); err != nil {
			return found, &measure.Mistake{Of: measure.OfTransport, Value: s.Transport, Message: err.Error()}
		}
	}
	return found, nil
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
func (f *outputFlags) write(stdout io.Writer, d *measure.Document) error {
	if len(d.Results) == 0 {
		return nil
	}
	if f.Markdown && f.CSV+f.JSON+f.Plot != "" {
		fmt.Fprintln(stdout) // the names of the files are a paragraph of their own
	}
	return writeFiles(stdout,
		output{f.CSV, func(path string) error { return writeCSV(path, d.Results) }},
		output{f.JSON, d.WriteFile},
		output{f.Plot, func(path string) error { return chart.Save(path, d) }})
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
	wrongRows, isMeasured := 0, false
	for _, r := range results {
		for _, row := range r.Rows {
			isMeasured = isMeasured || row.Calls > 0
			if row.Errors > 0 {
				wrongRows++
			}
		}
	}

	if wrongRows > 0 {
		return fmt.Errorf("%d rows have wrong results", wrongRows)
	}
	if len(results) == 0 || isMeasured {
		return nil
	}
	for _, row := range results[0].Rows {
		if reason := cmp.Or(row.Refused, row.Failed); reason != "" {
			return fmt.Errorf("nothing was measured: %s", reason)
		}
	}
	return nil
}
