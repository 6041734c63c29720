package ddp

import (
	"context"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/half"
)

// SyncMoments makes the mean and the variance of this rank's samples, of each channel, those of the
// samples of all ranks, and returns how many these are (the statistics of torch's SyncBatchNorm).
//
// Variances are those of a population: sums of squared deviations from the mean, divided by the
// number of samples. Ranks may have different numbers of samples; what one without samples passes
// does not count. If all have none, means and variances become 0. Several layers, whose samples are
// equally many, travel in one call if their channels lie in one slice.
//
// It merges deviations, in float64 and in rank order, and not sums of squares, of which little is
// left where means are large (Chan, Golub and LeVeque, 1979). The results are equal bit by bit on
// all ranks, whatever the algorithm is. In backward the sums over ranks of the gradients, and of
// their products with the normalized inputs, are a dist.AllReduceCoalesced.
//
// It makes one all-gather on the group, which all members call with as many channels. Lengths that
// differ on a rank, and a negative number of samples, are *ccl.InvalidArgumentError on this rank,
// and *ccl.MismatchError on the others. A nil group is *ccl.InvalidArgumentError. If it fails, mean
// and variance are unchanged.
func SyncMoments[T Float](ctx context.Context, group *dist.ProcessGroup, samples int, mean, variance []T) (all int, err error) {
	comm := group.Communicator()
	switch {
	case comm == nil:
		return 0, invalid("ddp.SyncMoments", "the group is nil, as dist.NewGroup returns to ranks that are no members")
	case len(mean) != len(variance):
		err = invalid("ddp.SyncMoments", "there are %d means and %d variances", len(mean), len(variance))
	case samples < 0:
		err = invalid("ddp.SyncMoments", "the number of samples is %d", samples)
	}
	if err != nil {
		return 0, comm.Reject(ctx, err)
	}

	here := make([]float64, 1, 1+2*len(mean))
	here[0] = float64(samples)
	for i := range mean {
		here = append(here, toFloat64(mean[i]), toFloat64(variance[i]))
	}
	gathered := make([]float64, len(here)*comm.Size())
	if err := ccl.AllGather(ctx, comm, here, gathered, ccl.WithLabel("moments"), ccl.WithKey("ddp.SyncMoments")); err != nil {
		return 0, inCall(err)
	}

	for i := range mean {
		var m moments
		for rank := range comm.Size() {
			of := gathered[rank*len(here):]
			m.merge(of[0], of[1+2*i], of[2+2*i])
		}
		mean[i], variance[i] = fromFloat64[T](m.mean), fromFloat64[T](m.variance())
	}
	for rank := range comm.Size() {
		all += int(gathered[rank*len(here)])
	}
	return all, nil
}

// moments are those of a number of samples.
type moments struct {
	samples, mean float64
	deviations    float64 // the sum of their squares
}

// merge adds other samples, of which the mean and the variance are known. Products are converted,
// so that no processor fuses them with a sum.
func (m *moments) merge(samples, mean, variance float64) {
	if samples == 0 {
		return
	}
	sum := m.samples + samples
	delta := mean - m.mean
	share := samples / sum
	m.deviations += float64(variance*samples) + float64(delta*m.samples*share*delta)
	m.mean += float64(delta * share)
	m.samples = sum
}

func (m *moments) variance() float64 {
	if m.samples == 0 {
		return 0
	}
	return m.deviations / m.samples
}

// toFloat64 returns the value of an element.
func toFloat64[T Float](x T) float64 {
	switch x := any(x).(type) {
	case float32:
		return float64(x)
	case half.Float16:
		return float64(x.Float32())
	case half.BFloat16:
		return float64(x.Float32())
	default:
		return x.(float64)
	}
}

// fromFloat64 rounds a value to a type.
func fromFloat64[T Float](x float64) (rounded T) {
	switch to := any(&rounded).(type) {
	case *float32:
		*to = float32(x)
	case *float64:
		*to = x
	case *half.Float16:
		*to = half.NewFloat16(float32(x))
	case *half.BFloat16:
		*to = half.NewBFloat16(float32(x))
	}
	return rounded
}
