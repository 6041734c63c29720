package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/examples/digits"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/partition/partitiontest"
)

// someDigits are enough to learn from, and few enough for the race detector.
func someDigits(t *testing.T) digits.Set[float64] {
	t.Helper()
	data, err := digits.Load[float64]()
	require.NoError(t, err)
	return data.Slice(0, 60)
}

// The network learns, on any partition the same as on one worker, and on one partition the same bits in
// each run.
func TestTrain(t *testing.T) {
	data := someDigits(t)
	for _, shape := range [][]int{{1, 1, 2, 2}, {2, 1, 1, 2}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			partitiontest.Workers(t, size(shape), func(ctx context.Context, world *partition.Partition) error {
				var losses [2][]float64
				for run := range losses {
					err := compare(ctx, world, shape, 2, data, func(e epoch) {
						losses[run] = append(losses[run], e.loss)
						if world.Rank() == 0 && !(math.Abs(e.loss-e.alone) <= 1e-9*e.alone) {
							t.Errorf("the loss is %v, and on one worker %v", e.loss, e.alone)
						}
					})
					if err != nil {
						return err
					}
				}
				if l := losses[0]; len(l) != 2 || !(l[1] < l[0]) || !slices.Equal(l, losses[1]) {
					return fmt.Errorf("losses of two runs: %v", losses)
				}
				everywhere, err := partition.AllGatherData(ctx, world, losses[0])
				for _, l := range everywhere {
					if !slices.Equal(l, losses[0]) {
						err = errors.Join(err, fmt.Errorf("losses of the workers: %v", everywhere))
					}
				}
				return err
			})
		})
	}
}

// What the program prints, but for the numbers.
func TestRun(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out, []int{1, 1, 2, 2}, 1, someDigits(t)))
	require.Regexp(t, `^ +1 x 1 x 2 x 2 workers +one worker
epoch      loss   seconds      loss   seconds  held out
    1  \d\.\d{6}  +\d+\.\d\d  \d\.\d{6}  +\d+\.\d\d +\d\d\.\d\d %
compared: the losses of all epochs on 1 x 1 x 2 x 2 workers and on one worker: the largest relative difference is \S+
$`, out.String())
}

func TestParseShape(t *testing.T) {
	shape, err := parseShape("1x1x2x12")
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 2, 12}, shape)
	for _, text := range []string{"", "2x", "0x2", "-1", "2,2", "x"} {
		_, err := parseShape(text)
		require.Error(t, err, text)
	}
}

// Mistakes that only the training can find make it fail.
func TestRunFails(t *testing.T) {
	data := someDigits(t)
	require.ErrorContains(t, run(io.Discard, []int{2, 2}, 1, data), "batch x 1 x height x width")
	require.ErrorContains(t, run(io.Discard, []int{1, 1, 1, 9}, 1, data), "halo_exchange")
}
