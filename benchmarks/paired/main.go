package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

// defaultCases are the arguments of goccl bench without others: short and long calls, between
// goroutines and between processes.
var defaultCases = []string{
	"all_reduce", "all_gather", "broadcast", "barrier",
	"--ranks", "2", "--transport", "local,shm", "--begin", "4", "--end", "16M", "--factor", "16", "--time", "50ms",
}

func main() {
	base := flag.String("base", "", "the `revision` to compare with")
	passes := flag.Int("passes", 9, "how often each build is measured")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, os.Stdout, *base, *passes, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "paired:", err)
		stop()
		os.Exit(1)
	}
}

// compare builds both revisions, measures them in turns, and prints the table.
func compare(ctx context.Context, out io.Writer, base string, passes int, cases []string) (err error) {
	if base == "" || passes < 1 {
		return errors.New("name a revision with -base, and at least one pass")
	}
	if len(cases) == 0 {
		cases = defaultCases
	}
	dir, err := os.MkdirTemp("", "goccl-paired-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	programs, err := buildBoth(ctx, dir, base)
	if err != nil {
		return err
	}

	rows := ratios{}
	for pass := range passes {
		fmt.Fprintf(os.Stderr, "pass %d of %d\n", pass+1, passes)
		var times [2]map[rowKey]float64
		for turn := range programs {
			i := (turn + pass) % len(programs)
			if times[i], err = measure(ctx, programs[i], dir, cases); err != nil {
				return err
			}
		}

		rows.add(times[0], times[1])
	}
	return rows.write(out)
}

// buildBoth builds goccl of the base and of the working tree.
func buildBoth(ctx context.Context, dir, base string) (programs [2]string, err error) {
	source := filepath.Join(dir, "source")
	if err := runCommand(ctx, ".", "git", "worktree", "add", "--quiet", "--detach", source, base); err != nil {
		return programs, err
	}
	defer func() {
		// The interrupt that ended a build does not keep the worktree.
		err = errors.Join(err, runCommand(context.WithoutCancel(ctx), ".", "git", "worktree", "remove", "--force", source))
	}()

	for i, from := range []string{source, "."} {
		programs[i] = filepath.Join(dir, fmt.Sprintf("goccl-%d", i))
		if err := runCommand(ctx, from, "go", "build", "-o", programs[i], "./cmd/goccl"); err != nil {
			return programs, err
		}
	}
	return programs, nil
}

// measure runs the benchmark of a build once and returns its times.
func measure(ctx context.Context, program, dir string, cases []string) (map[rowKey]float64, error) {
	result := program + ".json"
	args := append([]string{"bench"}, cases...)
	if err := runCommand(ctx, dir, program, append(args, "--json", result)...); err != nil {
		return nil, err
	}
	return readTimes(result)
}

// runCommand runs a program, and returns its output if it fails.
func runCommand(ctx context.Context, dir, program string, args ...string) error {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = dir
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	output, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, output)
	}
	return nil
}
