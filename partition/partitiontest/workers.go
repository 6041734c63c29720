// Package partitiontest runs tests on workers that are goroutines.
//
// # Model
//
// [Workers] makes a group of ranks and runs a function on each, for every kind of transport.
//
// # Concurrency
//
// The function runs in several goroutines at once. Several tests may use the package at once.
//
// # Failure
//
// An error of a worker fails the test and ends the context of all workers.
package partitiontest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	_ "github.com/goccl/goccl/algorithms" // the workers communicate by them
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
)

// Workers runs a function on that many workers, each with its partition of all of them, as a
// subtest for each kind of transport: memory that ranks share, with ranks that poll and that sleep,
// and memory that they do not share, as between processes. The subtest fails if any worker returns
// an error; the first error ends the waiting of all.
func Workers(t *testing.T, workers int, f func(ctx context.Context, world *partition.Partition) error) {
	t.Helper()

	for name, connect := range map[string]func(n int) ([]transport.Endpoint, error){
		"poll":  func(n int) ([]transport.Endpoint, error) { return local.NewWaiting(n, local.Poll), nil },
		"park":  func(n int) ([]transport.Endpoint, error) { return local.NewWaiting(n, local.Park), nil },
		"arena": func(n int) ([]transport.Endpoint, error) { return shm.NewHeap(n, shm.SmallestGeometry(n)) },
	} {
		t.Run(name, func(t *testing.T) {
			eps, err := connect(workers)
			if err != nil {
				t.Fatal(err)
			}

			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended := make(chan error, workers)
			for r, ep := range eps {
				go func() {
					err := errors.New("it ended its goroutine, as t.FailNow does")
					defer func() {
						if err != nil {
							err = fmt.Errorf("worker %d: %w", r, err)
							cancel(err) // the others would wait
						}
						ended <- err
					}()
					err = work(ctx, ep, f)
				}()
			}
			var errs []error
			for range eps {
				errs = append(errs, <-ended)
			}

			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
		})
	}
}

func work(ctx context.Context, ep transport.Endpoint, f func(context.Context, *partition.Partition) error) error {
	c, err := ccl.New(ctx, ep)
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // the result counts
	world, err := partition.New(ctx, c)
	if err != nil {
		return err
	}
	defer world.Close() //nolint:errcheck // the result counts
	if err := f(ctx, world); err != nil {
		return err
	}
	return c.Barrier(ctx) // no worker leaves before the others are done
}
