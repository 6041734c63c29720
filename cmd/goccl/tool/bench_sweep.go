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
	cfg, found, err := loadConfig(file.Config)
	if err != nil {
		return err
	}
	if file.Config != "" {
		found.FoundBy = "the sweep file"
	}
	job := measure.Job{Config: cfg, File: file.Config, Transport: file.Transport, Entries: file.Entries, Budget: file.Budget}
	var settings []*config.Settings
	for _, ranks := range file.Plan.Ranks {
		s, err := job.Resolve(ranks)
		if err != nil {
			return err
		}
		settings = append(settings, s)
	}
	store, err := sweep.Open(c.outDir(), sweep.NewFingerprint(file, settings), c.Fresh)
	if err != nil {
		return err
	}

	cases := file.Plan.Cases()
	document := measure.NewDocument(found)
	done := 0
	for _, cell := range cases {
		if _, there, err := store.Load(cell); err != nil {
			return err
		} else if there {
			done++
		}
	}
	fmt.Fprintf(stdout, "sweep          %s: %d cells, %d of them done already\n", c.Sweep, len(cases), done)
	err = newBenchTable(stdout, bars, document).measureAll(cases, func(cell measure.Case) (measure.Result, error) {
		r, there, err := store.Load(cell)
		if err == nil && !there {
			if r, err = hosts.measure(ctx, &job, cell); err == nil {
				err = store.Save(r)
			}
		}
		return r, err
	})
	if err != nil {
		return fmt.Errorf("%w; %d of %d cells are done, and the same command continues from there", err, len(document.Results), len(cases))
	}
	return errors.Join(writeReport(stdout, store, file, document, settings[0]), judge(document.Results))
}

func (c *benchCommand) outDir() string {
	name := filepath.Base(c.Sweep)
	return cmp.Or(c.Out, strings.TrimSuffix(name, filepath.Ext(name))+"-results")
}

func writeReport(stdout io.Writer, store *sweep.Store, file *sweep.File, document *measure.Document, settings *config.Settings) error {
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
