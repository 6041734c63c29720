package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

var (
	// ours is the reference for peers: processes with processes.
	ours = table.Contestant{Library: "goccl", Entry: "processes"}
	// goroutines share an address space; shown for comparison only.
	goroutines = table.Contestant{Library: "goccl", Entry: "goroutines"}
	// alloc is processes whose vectors come from Alloc.
	alloc = table.Contestant{Library: "goccl", Entry: "alloc"}
)

// maxCalls bounds the rounds of a size; the rest of the rule is
// in the programs.
const maxCalls = 20000

const (
	gocclProgram  = "github.com/goccl/goccl/benchmarks/peers/programs/goccl_allreduce"
	gocclLauncher = "github.com/goccl/goccl/cmd/goccl"
)

func (w workplace) build(ctx context.Context, packages ...string) error {
	build := child{args: append([]string{"go", "build", "-o", w.dir}, packages...)}
	if _, err := build.output(ctx, 5*time.Minute, graceTime); err != nil {
		return fmt.Errorf("goccl's own program was not built: %s: %w", build, err)
	}
	return nil
}

// setUpGoccl builds goccl's program and its launcher. The ranks of the program are goroutines if it
// is started by itself, and processes under goccl run, which places them on cores as it does for
// users.
func setUpGoccl(ctx context.Context, w workplace) ([]entry, error) {
	if err := w.build(ctx, gocclProgram, gocclLauncher); err != nil {
		return nil, err
	}
	const program = "goccl_allreduce"
	return []entry{
		{goroutines.Entry, func(ranks int) child {
			return child{args: []string{filepath.Join(w.dir, program), strconv.Itoa(ranks), "private"}}
		}},
		{ours.Entry, w.onProcesses(program, "private")},
		{alloc.Entry, w.onProcesses(program, "alloc")},
	}, nil
}

// onProcesses returns a launch of a program of goccl by goccl run. Its first arguments are the
// number of ranks and a form.
func (w workplace) onProcesses(program, form string) func(ranks int) child {
	return func(ranks int) child {
		n := strconv.Itoa(ranks)
		return child{args: []string{filepath.Join(w.dir, "goccl"), "run", "-n", n, "--no-prefix", filepath.Join(w.dir, program), n, form}}
	}
}
