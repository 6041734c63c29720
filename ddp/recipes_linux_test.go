package ddp_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

func init() { works["stop on a signal"] = stopOnSignal }

// trainUntilStopped makes steps until a signal has reached some rank, and saves the number of the last one.
func trainUntilStopped(ctx context.Context, model *ddp.Reducer, path string, makeStep func(step int) error) error {
	signals, end := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer end()
	for step := 1; ; step++ {
		if err := makeStep(step); err != nil {
			return err
		}
		stop := []int{0}
		if signals.Err() != nil { // of signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
			stop[0] = 1
		}
		if err := dist.AllReduce(stop, dist.Max); err != nil {
			return err
		}
		if stop[0] == 1 {
			return model.Save(ctx, path, step)
		}
	}
}

// A signal that reaches one rank makes all ranks stop after the same step, and the checkpoint has it.
func TestStopOnSignal(t *testing.T) {
	t.Setenv("TEST_DDP_DIR", t.TempDir())
	everywhere(t, "stop on a signal", 1, func(t *testing.T, all []outcome) {
		succeeded(t, all)
		for rank, o := range all {
			require.Equal(t, all[0].Values, o.Values, "rank %d", rank)
			require.Equal(t, o.Values[0], o.Values[1], "rank %d: what it made and what was saved", rank)
			require.GreaterOrEqual(t, o.Values[0], 3.0)
		}
	})
}

func stopOnSignal(rank, ranks int, o *outcome) error {
	r, g, err := three(ddp.Options{}, true)
	if err != nil {
		return err
	}
	path := filepath.Join(os.Getenv("TEST_DDP_DIR"), "model")
	made, saved := 0, 0
	err = trainUntilStopped(bg, r, path, func(step int) error {
		made = step
		_, err := makeStep(r, g, 1)
		if step == 3 && rank == ranks-1 {
			err = errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGTERM))
		}
		return err
	})
	err = errors.Join(err, r.Load(bg, path, &saved))
	o.Values = []float64{float64(made), float64(saved)}
	return errors.Join(err, r.Close())
}
