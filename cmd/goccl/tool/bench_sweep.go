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

// sweep is `goccl bench --sweep`: it measures the missing cells of the file and then
// writes the report.
func (c *benchCommand) sweep(ctx context.Context, stdout io.Writer, bars bars, hosts *ranks) error {
	file, err := sweep.Load(c.Sweep)
	if err != nil {
		return err
	}
	jobs := file.Job.Combine(file.Configs, file.Topologies, file.Transports)
	found, err := loadJobs(jobs)
	if mistake, ok := errors.AsType[*measure.Mistake](err); ok {
		return file.At(mistake)
	}
	if err != nil {
		return err
	}
	if len(file.Configs) > 0 {
		found.FoundBy = "the sweep file"
	}
	var settings []*config.Settings
	var held []sweep.Held
	for _, job := range jobs {
		of := possible(job, file.Plan.Ranks)
		settings = append(settings, of...)
		if len(of) > 0 {
			held = append(held, sweep.Held{Of: job.String(), Settings: of[0]})
		}
	}
	store, err := sweep.Open(c.outDir(), sweep.NewFingerprint(file, settings), c.Fresh)
	if err != nil {
		return err
	}

	document := measure.NewDocument(found)
	cells, done := 0, 0
	for i := range jobs {
		for _, cell := range file.Plan.Cases() {
			_, there, err := store.Load(i, cell)
			if err != nil {
				return err
			}
			cells++
			if there {
				done++
			}
		}
	}
	noun := "cells"
	if cells == 1 {
		noun = "cell"
	}
	fmt.Fprintf(stdout, "sweep          %s: %d %s, %d done already\n", c.Sweep, cells, noun, done)
	table := newBenchTable(stdout, bars, document, false)
	failed := 0
	for i, job := range jobs {
		err = table.measureAll(file.Plan.Cases(), func(cell measure.Case) (measure.Result, error) {
			r, there, err := store.Load(i, cell)
			if err != nil || there {
				return r, err
			}
			if r, err = hosts.measure(ctx, job, cell); err == nil {
				return r, store.Save(i, r)
			}
			if ctx.Err() != nil {
				return r, err
			}
			failed++ // and the sweep goes on with other cells
			return job.Unmeasured(cell, measure.Row{Failed: err.Error()}), nil
		})
		if err != nil {
			return fmt.Errorf("%w; %d of %d cells are done, and the same command continues from there", err, len(document.Results)-failed, cells)
		}
	}
	err = errors.Join(writeReport(stdout, store, file, document, held), judge(document.Results))
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d cells failed: the same command tries them again", failed, cells))
	}
	return err
}

// possible returns the settings of a job for the numbers of ranks that its configuration and topology allow.
func possible(job *measure.Job, ranks []int) (all []*config.Settings) {
	for _, n := range ranks {
		if settings, err := job.Resolve(n); err == nil {
			all = append(all, settings)
		}
	}
	return all
}

func (c *benchCommand) outDir() string {
	name := filepath.Base(c.Sweep)
	return cmp.Or(c.Out, strings.TrimSuffix(name, filepath.Ext(name))+"-results")
}

func writeReport(stdout io.Writer, store *sweep.Store, file *sweep.File, document *measure.Document, settings []sweep.Held) error {
	var table bytes.Buffer
	if err := measure.WriteCSV(&table, document.Results); err != nil {
		return err
	}
	page, err := sweep.Report(file, document, settings)
	if err != nil {
		return err
	}
	return writeFiles(stdout,
		output{store.Path("results.json"), document.WriteFile},
		output{store.Path("results.csv"), func(path string) error { return sweep.WriteFile(path, table.Bytes()) }},
		output{store.Path("report.html"), func(path string) error { return sweep.WriteFile(path, page) }})
}
