// Command kernel compares your own algorithm with the built-in ones: in one run each does
// the same all-reduce, by turns.
//
// The algorithm is in doubling/doubling.go, its test in doubling/doubling_test.go, and
// ccl.yaml names it. blocked is a second one, which uses a view.
// docs/guides/writing-an-algorithm.md explains all of it.
//
// To compare your algorithms copy main.go, compare.go and ccl.yaml, import your packages
// below, and name them in ccl.yaml: every entry there is compared.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
	_ "github.com/goccl/goccl/examples/kernel/blocked"
	_ "github.com/goccl/goccl/examples/kernel/doubling"
)

//go:embed ccl.yaml
var ownConfig []byte

func main() {
	ranks := flag.Int("ranks", 4, "number of goroutine ranks")
	file := flag.String("config", "", "a ccl.yaml to use instead of the example's")
	flag.Parse()
	if err := run(os.Stdout, *ranks, *file, 200); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run compares all entries of the configuration on a number of ranks and prints a table:
// the median time of that many calls of each, and the entry that the rules choose.
func run(out io.Writer, ranks int, file string, times int) error {
	cfg, err := load(file)
	if err != nil {
		return err
	}

	all := make([]*measurements, ranks)
	err = dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(cfg)); err != nil {
			return err
		}
		measured, err := compare(cfg.Entries(), times)
		if err != nil {
			return err
		}

		all[rank] = measured
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(ranks))
	if err != nil {
		return err
	}
	return printTable(out, cfg.Entries(), all)
}

func load(file string) (*config.Config, error) {
	if file != "" {
		return config.Load(file)
	}
	return config.Parse("examples/kernel/ccl.yaml", ownConfig)
}
