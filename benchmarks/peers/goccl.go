package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

var (
	// ours is the reference for peers: processes with processes.
	ours = contestant{"goccl", "processes"}
	// goroutines share an address space; shown for comparison only.
	goroutines = contestant{"goccl", "goroutines"}
)

// maxCalls bounds the rounds of a size; the rest of the rule is
// in the programs.
const maxCalls = 20000

const gocclProgram = "github.com/goccl/goccl/benchmarks/peers/programs/goccl_allreduce"

// setUpGoccl builds goccl's program: its ranks are goroutines if it is started
// once, and processes if it is started once for each rank.
func setUpGoccl(ctx context.Context, w workplace) ([]entry, error) {
	program := filepath.Join(w.dir, "goccl_allreduce")
	build := child{args: []string{"go", "build", "-o", program, gocclProgram}}
	if _, err := build.output(ctx, 5*time.Minute, grace); err != nil {
		return nil, fmt.Errorf("goccl's own program was not built: %s: %w", build, err)
	}
	start := func(ranks int, env ...string) child {
		return child{[]string{program, strconv.Itoa(ranks)}, env}
	}
	return []entry{
		{goroutines.entry, func(ranks int) job { return job{start(ranks)} }},
		{ours.entry, func(ranks int) (all job) {
			name := "/goccl-peers-" + rand.Text() // unique
			for rank := range ranks {
				all = append(all, start(ranks, "GOCCL_SHM_NAME="+name,
					"GOCCL_SHM_RANK="+strconv.Itoa(rank), "GOCCL_SHM_SIZE="+strconv.Itoa(ranks)))
			}
			return all
		}},
	}, nil
}
