// Command kernel compares an algorithm of one's own with the built-in ones: each
// does the same all-reduce, in turns, in one run.
//
// The algorithm is in doubling/doubling.go, its proof in doubling/doubling_test.go,
// and ccl.yaml names it. blocked is a second one, which uses a window.
// docs/writing-an-algorithm.md leads through all of it.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	_ "github.com/goccl/goccl/examples/kernel/blocked"
	_ "github.com/goccl/goccl/examples/kernel/doubling"
)

//go:embed ccl.yaml
var ownConfig []byte

func main() {
	ranks := flag.Int("ranks", 4, "how many goroutines take part")
	file := flag.String("config", "", "a ccl.yaml to use instead of the example's")
	flag.Parse()
	if err := run(os.Stdout, *ranks, *file, 200); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run compares the algorithms on so many ranks, and prints a table: the median of
// times calls of each, in microseconds, and what the rules choose.
func run(out io.Writer, ranks int, file string, times int) error {
	config, err := load(file)
	if err != nil {
		return err
	}
	var table *table
	err = dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(config)); err != nil {
			return err
		}
		measured, err := compare(times)
		if err != nil {
			return err
		}
		if rank == 0 {
			table = measured
		}
		return dist.DestroyProcessGroup()
	}, dist.Ranks(ranks))
	if err != nil {
		return err
	}
	table.print(out, ranks)
	return nil
}

func load(file string) (*ccl.Config, error) {
	if file != "" {
		return ccl.LoadConfig(file)
	}
	return ccl.ParseConfig("examples/kernel/ccl.yaml", ownConfig)
}
