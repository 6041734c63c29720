package processes

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/dist"
)

// failingVariable makes the test binary a program one of whose ranks fails in the middle. Its value
// is the name of the failure, the rank and the step.
const failingVariable = "TEST_GOCCL_FAILING"

// The program's numbers of ranks and steps.
const (
	failingRanks = 4
	steps        = 8
)

// ways are what the failing rank does in place of a step's call, by the names of failures.
var ways = map[string]func(grads []float32) error{
	"panic": func(grads []float32) error { return dist.AllReduce(grads[:pick([]int{1, 2, 3})], dist.Avg) },
	"error": func([]float32) error {
		_, err := os.Open("shard-5")
		return fmt.Errorf("load batch: %w", err)
	},
	"exit": func([]float32) error {
		fmt.Fprintln(os.Stderr, "out of luck")
		os.Exit(3)
		return nil
	},
	"kill": func([]float32) error {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	},
	"hang":     func([]float32) error { return load() },
	"mismatch": func(grads []float32) error { return dist.AllReduce(grads[1:], dist.Avg) },
}

func pick(order []int) int { return order[len(order)+2] }

// load takes longer than others wait for it.
func load() error {
	time.Sleep(patience)
	return nil
}

// playFailing is a program as users write it.
func playFailing(text string) {
	var way string
	var culprit, at int
	if _, err := fmt.Sscan(text, &way, &culprit, &at); err != nil {
		panic(err)
	}
	way, isPiped := strings.CutSuffix(way, "-behind-a-pipe")
	if isPiped && cmp.Or(os.Getenv("RANK"), os.Getenv("OMPI_COMM_WORLD_RANK")) == fmt.Sprint(culprit) {
		self, err := os.Executable()
		if err == nil {
			err = syscall.Exec("/bin/sh", []string{"sh", "-c", `"$0" | cat`, self}, append(os.Environ(), fmt.Sprintf("%s=%s %d %d", failingVariable, way, culprit, at)))
		}
		panic(err)
	}
	worker := func(_ context.Context, rank int) error {
		var settings []dist.InitOption
		switch {
		case rank == culprit && way == "files":
			limitFiles()
		case rank == culprit && way == "another-timeout":
			settings = append(settings, dist.WithTimeout(7*time.Second))
		case rank == culprit && way == "early-end":
			return nil
		}
		if err := dist.InitProcessGroup("ccl", settings...); err != nil {
			return err
		}
		grads := make([]float32, 64)
		begin, seconds := time.Now(), 0
		for step := 0; step < steps || way == "endless"; step++ {
			if way == "endless" && time.Since(begin) >= time.Duration(seconds)*time.Second {
				fmt.Println("second", seconds)
				seconds++
			}
			var opts []dist.CallOption
			if way == "hang" && step == at {
				opts = append(opts, dist.WithCallTimeout(500*time.Millisecond))
			}
			call := func(grads []float32) error { return dist.AllReduce(grads, dist.Avg, opts...) }
			if rank == culprit && step == at {
				if way == "early-return" {
					return nil
				}
				call = ways[way]
			}
			if err := call(grads); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		return dist.DestroyProcessGroup()
	}
	if err := dist.Spawn(worker); err != nil {
		log.Fatal(err)
	}
}
