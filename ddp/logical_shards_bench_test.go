package ddp_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ddp"
)

// compute is how long a rank computes ResNet-50's gradients of a micro-batch, on a core of its own: of 4 images with
// 12 Gflop each (3 times the forward pass of He et al., 2016), at 100 Gflop/s.
const compute = 480 * time.Millisecond

// BenchmarkLogicalShards compares steps of logical shards with steps of as many micro-batches, which NoSync accumulates,
// in turns. "ratio" is the quotient of the medians of both; "ms" what shards add to a step. With as many ranks as cores
// the backward is on those cores.
func BenchmarkLogicalShards(b *testing.B) {
	for _, model := range []struct {
		name    string
		lengths []int
		compute time.Duration
	}{
		{"demo", []int{64*512 + 512, 512*256 + 256, 256*10 + 10}, 2500 * time.Microsecond},
		{"resnet50", resnet50(), compute},
	} {
		for _, c := range [][2]int{{2, 2}, {2, 8}, {4, 4}, {4, 16}, {8, 8}, {8, 32}, {3, 8}, {2, 6}} {
			b.Run(fmt.Sprintf("%s/ranks=%d/shards=%d", model.name, c[0], c[1]), func(b *testing.B) {
				errs := spawn(b, c[0], func(rank int) error {
					return compareShards(b, rank, c[0], c[1], model.lengths, model.compute)
				})
				for _, err := range errs {
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// resnet50 returns the lengths of its 161 parameters, 25.6 million elements (He et al., 2016).
func resnet50() []int {
	lengths := []int{64 * 3 * 49, 64, 64}
	convolution := func(in, out, size int) { lengths = append(lengths, out*in*size*size, out, out) } // with its normalization
	in := 64
	for stage, blocks := range []int{3, 4, 6, 3} {
		width := 64 << stage
		for block := range blocks {
			convolution(in, width, 1)
			convolution(width, width, 3)
			convolution(width, 4*width, 1)
			if block == 0 {
				convolution(in, 4*width, 1)
			}
			in = 4 * width
		}
	}
	return append(lengths, 2048*1000, 1000)
}

// spin computes for about so long, if it has a core.
func spin(d time.Duration) (x float64) {
	const perMicrosecond = 300 // of these additions, which wait for each other
	for range int(d.Microseconds()) * perMicrosecond {
		x = x*0.5 + 1
	}
	return x
}

func compareShards(b *testing.B, rank, ranks, shards int, lengths []int, each time.Duration) error {
	reducers := make([]*ddp.Reducer, 2)
	for i, opts := range []ddp.Options{{}, {LogicalShards: shards}} {
		var params []ddp.Parameter
		for p, n := range lengths {
			params = append(params, ddp.Param(fmt.Sprint("p", p), make([]float32, n), nil))
		}
		var err error
		if reducers[i], err = ddp.New(bg, world(), params, opts); err != nil {
			return err
		}
	}
	backward := func(r *ddp.Reducer) {
		for p := len(lengths) - 1; p >= 0; p-- {
			runtime.KeepAlive(spin(each / time.Duration(len(lengths))))
			g := ddp.Grad[float32](r, p)
			for i := range g {
				g[i] += 1
			}
			r.Ready(p)
		}
	}
	batches := (shards + ranks - 1) / ranks
	plain := func() error {
		r := reducers[0]
		clearGradients(r, lengths)
		if err := r.NoSync(func() error {
			for range batches - 1 {
				backward(r)
			}
			return nil
		}); err != nil {
			return err
		}
		backward(r)
		return r.Wait(bg)
	}
	sharded := func() error {
		r := reducers[1]
		for range r.Shards() {
			clearGradients(r, lengths)
			backward(r)
		}
		return r.Wait(bg)
	}

	times := [2][]time.Duration{}
	if rank == 0 {
		b.ResetTimer()
	}
	for i := range b.N + 1 {
		for k, step := range []func() error{plain, sharded} {
			start := time.Now()
			if err := step(); err != nil {
				return err
			}
			if i > 0 {
				times[k] = append(times[k], time.Since(start))
			}
		}
	}
	if rank == 0 {
		var medians [2]time.Duration
		for k := range times {
			slices.Sort(times[k])
			medians[k] = times[k][len(times[k])/2]
		}
		b.ReportMetric(float64(medians[1])/float64(medians[0]), "ratio")
		b.ReportMetric(float64(medians[1]-medians[0])/1e6, "ms")
	}
	return nil
}

func clearGradients(r *ddp.Reducer, lengths []int) {
	for p := range lengths {
		clear(ddp.Grad[float32](r, p))
	}
}
