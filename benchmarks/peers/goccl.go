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

// build builds programs of goccl.
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
	program, launcher := filepath.Join(w.dir, "goccl_allreduce"), filepath.Join(w.dir, "goccl")
	processes := func(memory string) func(ranks int) child {
		return func(ranks int) child {
			n := strconv.Itoa(ranks)
			return child{args: []string{launcher, "run", "-n", n, "--no-prefix", program, n, memory}}
		}
	}
	return []entry{
		{goroutines.Entry, func(ranks int) child { return child{args: []string{program, strconv.Itoa(ranks), "private"}} }},
		{ours.Entry, processes("private")},
		{alloc.Entry, processes("alloc")},
	}, nil
}
