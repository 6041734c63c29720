package ddp_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

func init() { works["moments"] = syncMoments }

// momentsOf returns the mean and the variance of samples, by two passes.
func momentsOf(samples []float64) (mean, variance float64) {
	for _, x := range samples {
		mean += x / float64(len(samples))
	}
	for _, x := range samples {
		variance += (x - mean) * (x - mean) / float64(len(samples))
	}
	return mean, variance
}

// The moments of all ranks' samples are those of one rank that has them all, also where the mean is large beside the
// deviations, and where ranks have different numbers of samples, or none.
func TestSyncMoments(t *testing.T) {
	everywhere(t, "moments", 1, func(t *testing.T, all []outcome) {
		succeeded(t, all)
		for rank, o := range all {
			require.Equal(t, all[0].Values, o.Values, "rank %d", rank)
		}
	})
}

func syncMoments(rank, ranks int, o *outcome) error {
	centres := []float64{0, 1e9, -3}
	mean, variance := make([]float64, len(centres)), make([]float64, len(centres))
	random := rand.New(rand.NewPCG(7, 7))
	total := 0
	samples := make([][]float64, len(centres))
	here := 0
	for other := range ranks {
		n := []int{3, 0, 10, 1, 7, 2, 5}[other]
		total += n
		for i, centre := range centres {
			var local []float64
			for range n {
				local = append(local, centre+random.NormFloat64())
			}
			samples[i] = append(samples[i], local...)
			if other != rank {
				continue
			}
			here = n
			if mean[i], variance[i] = momentsOf(local); n == 0 {
				mean[i], variance[i] = math.NaN(), math.NaN()
			}
		}
	}
	all, err := ddp.SyncMoments(bg, world(), here, mean, variance)
	if err != nil {
		return err
	}
	if err := equal("samples", all, total); err != nil {
		return err
	}
	for i := range centres {
		m, v := momentsOf(samples[i])
		if math.Abs(mean[i]-m) > 1e-12*max(1, math.Abs(m)) || math.Abs(variance[i]-v) > 1e-6*v {
			return fmt.Errorf("channel %d: %v and %v, want %v and %v", i, mean[i], variance[i], m, v)
		}
	}
	o.Values = append(mean, variance...)

	none := []float32{5, 6} // no rank has samples
	if all, err = ddp.SyncMoments(bg, world(), 0, none[:1], none[1:]); err != nil || all != 0 || none[0] != 0 || none[1] != 0 {
		return fmt.Errorf("no samples: %d, %v: %w", all, none, err)
	}
	return nil
}

// What is wrong on a rank is an error on all, and nothing changes.
func TestSyncMomentsMistakes(t *testing.T) {
	_, err := ddp.SyncMoments(bg, nil, 1, make([]float64, 2), make([]float64, 2))
	var refused *ccl.InvalidArgumentError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Message, "the group is nil")
	for name, c := range map[string]struct {
		samples, variances int
		want               string
	}{"lengths": {2, 3, "there are 2 means and 3 variances"}, "samples": {-1, 2, "the number of samples is -1"}} {
		t.Run(name, func(t *testing.T) {
			for rank, err := range spawn(t, 2, func(rank int) error {
				samples, variances := 2, 2
				if rank == 1 {
					samples, variances = c.samples, c.variances
				}
				mean := []float32{1, 2}
				_, err := ddp.SyncMoments(bg, world(), samples, mean, make([]float32, variances))
				require.Equal(t, []float32{1, 2}, mean)
				return errors.Join(err, dist.Barrier()) // no rank ends before the others know
			}) {
				require.ErrorContains(t, err, c.want)
				if rank == 0 {
					var m *ccl.MismatchError
					require.ErrorAs(t, err, &m)
				} else {
					var e *ccl.InvalidArgumentError
					require.ErrorAs(t, err, &e)
				}
			}
		})
	}
}
