package tool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/cmd/goccl/internal/sweep"
)

// sweepRun is `goccl bench --sweep` while it runs.
type sweepRun struct {
	file   *sweep.File
	setups []*measure.Setup
	store  *sweep.Store
	ranks  ranks
	failed int // cells
}

// sweep measures the missing cells of the file and then writes the report.
func (c *benchCommand) sweep(ctx context.Context, stdout io.Writer, stderr stderr) error {
	file, err := sweep.Load(c.Sweep)
	if err != nil {
		return err
	}
	s := &sweepRun{file: file, setups: file.Setup.Combine(file.Configs, file.Topologies, file.Transports), ranks: ranks{stderr: stderr}}
	found, err := loadSetups(s.setups)
	if mistake, ok := errors.AsType[*measure.Mistake](err); ok {
		return file.At(mistake)
	}

	if err != nil {
		return err
	}
	if len(file.Configs) > 0 {
		found.FoundBy = "the sweep file"
	}

	settings, held := s.resolve()
	if s.store, err = sweep.Open(c.outDir(), sweep.NewFingerprint(file, settings), c.Fresh); err != nil {
		return err
	}
	cells, done, err := s.count()
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "sweep          %s: %s, %d done already\n", c.Sweep, counted(cells, "cell"), done)

	document := measure.NewDocument(found)
	table := newBenchTable(stdout, stderr, document, false)
	for i := range s.setups {
		if err := table.measureAll(file.Plan.Cases(), func(cell measure.Case) (measure.Result, error) { return s.measure(ctx, i, cell) }); err != nil {
			return fmt.Errorf("%w; %d of %d cells are done, and the same command continues from there", err, len(document.Results)-s.failed, cells)
		}
	}
	err = errors.Join(s.writeReport(stdout, document, held), judge(document.Results))
	if s.failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d cells failed: the same command tries them again", s.failed, cells))
	}
	return err
}

// resolve returns the settings of all setups, for the numbers of ranks that each allows, and the
// first of each setup.
func (s *sweepRun) resolve() (settings []*config.Settings, held []sweep.Held) {
	for _, setup := range s.setups {
		isFirst := true
		for _, n := range s.file.Plan.Ranks {
			of, err := setup.Resolve(n)
			if err != nil {
				continue
			}

			if settings = append(settings, of); isFirst {
				held = append(held, sweep.Held{Of: setup.String(), Settings: of})
			}
			isFirst = false
		}
	}
	return settings, held
}

// count returns the number of cells, and of those that are done.
func (s *sweepRun) count() (cells, done int, err error) {
	for i := range s.setups {
		for _, cell := range s.file.Plan.Cases() {
			_, isDone, err := s.store.Load(i, cell)
			if err != nil {
				return 0, 0, err
			}
			cells++
			if isDone {
				done++
			}
		}
	}

	return cells, done, nil
}

// measure returns the result of a cell, which it measures unless it is done. A cell that fails has
// a row with its error, and is not stored.
func (s *sweepRun) measure(ctx context.Context, setup int, cell measure.Case) (measure.Result, error) {
	r, isDone, err := s.store.Load(setup, cell)
	if err != nil || isDone {
		return r, err
	}
	if r, err = s.ranks.measure(ctx, s.setups[setup], cell); err == nil {
		return r, s.store.Save(setup, r)
	}
	if ctx.Err() != nil {
		return r, err
	}
	s.failed++
	return s.setups[setup].Unmeasured(cell, measure.Row{Failed: err.Error()}), nil
}

func (c *benchCommand) outDir() string {
	name := filepath.Base(c.Sweep)
	return cmp.Or(c.Out, strings.TrimSuffix(name, filepath.Ext(name))+"-results")
}

func (s *sweepRun) writeReport(stdout io.Writer, document *measure.Document, held []sweep.Held) error {
	var table bytes.Buffer
	if err := measure.WriteCSV(&table, document.Results); err != nil {
		return err
	}
	page, err := sweep.Report(s.file, document, held)
	if err != nil {
		return err
	}
	return writeFiles(stdout,
		output{s.store.Path("results.json"), document.WriteFile},
		output{s.store.Path("results.csv"), func(path string) error { return sweep.WriteFile(path, table.Bytes()) }},
		output{s.store.Path("report.html"), func(path string) error { return sweep.WriteFile(path, page) }})
}
