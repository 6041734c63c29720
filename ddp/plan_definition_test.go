package ddp_test

import (
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// Definition is what the ranks of a training see, by the documents of package ddp and nothing else:
// loops over ranks in their order, without buckets, copies or calls.
type Definition struct {
	Data    [][][]float64 // of each rank and parameter
	Buffers [][]float64   // of each rank
	plan    *Plan
	t       *Training
	first   *Step // with StaticGraph: what is ready there is ready in all steps
}

// NewDefinition returns what ranks have after New: what rank 0 had.
func NewDefinition(p *Plan, t *Training) *Definition {
	d := &Definition{plan: p, t: t, Data: make([][][]float64, p.Ranks), Buffers: make([][]float64, p.Ranks)}
	for rank := range p.Ranks {
		for i := range t.Lengths {
			d.Data[rank] = append(d.Data[rank], d.Values(0, 0, 0, i))
		}
		d.Buffers[rank] = d.Values(0, 0, 1, 0)
	}
	return d
}

// rounded returns x as an element of a type has it.
func rounded(t ccl.DType, x float64) float64 {
	switch t {
	case ccl.Float32:
		return float64(float32(x))
	case ccl.Float16:
		return float64(half.NewFloat16(float32(x)).Float32())
	case ccl.BFloat16:
		return float64(half.NewBFloat16(float32(x)).Float32())
	default:
		return x
	}
}

// addUp returns the mean of what ranks bring. Floats of 16 bits are added up as float32. Within
// Join their sum is rounded before it is divided, except that of float16 without a hook.
func (d *Definition) addUp(parameter int, locals [][]float64, ranks int, inJoin bool) []float64 {
	t := d.t.Types[parameter]
	sumType := t
	if t.Size() == 2 {
		sumType = ccl.Float32
	}
	mean := make([]float64, d.t.Lengths[parameter])
	if d.t.Shards > 0 {
		mean = slices.Clone(addPairwise(sumType, locals))
	} else {
		for _, local := range locals {
			add(sumType, mean, local)
		}
	}

	for j := range mean {
		if inJoin && (t != ccl.Float16 || d.t.Hooked) {
			mean[j] = rounded(t, mean[j])
		}
		if mean[j] = rounded(t, mean[j]/float64(ranks)); d.t.Hooked {
			mean[j] = -mean[j]
		}
	}
	return mean
}

// addPairwise returns the sum in the order of a binary tree, whose left subtree has the largest power
// of two below the number of its leaves.
func addPairwise(t ccl.DType, x [][]float64) []float64 {
	if len(x) == 1 {
		return x[0]
	}
	left := 1
	for 2*left < len(x) {
		left *= 2
	}
	sum := slices.Clone(addPairwise(t, x[:left]))
	add(t, sum, addPairwise(t, x[left:]))
	return sum
}

// Values returns what a rank, or a shard, adds to a gradient in a batch: thirds, whose sums depend on their
// order.
func (d *Definition) Values(step, rank, batch, parameter int) []float64 {
	seed := rand.NewPCG(d.plan.Seed<<16+uint64(d.t.Number<<8+step), uint64(rank<<16+batch<<8+parameter))
	base := rand.New(seed).IntN(1000)
	v := make([]float64, d.t.Lengths[parameter])
	for j := range v {
		v[j] = rounded(d.t.Types[parameter], float64(base+j%97-500)/3)
	}
	return v
}

// ofShard returns the gradient of a logical shard.
func (d *Definition) ofShard(s *Step, shard, parameter int) []float64 {
	g := d.Values(s.Number, shard, 0, parameter)
	add(d.t.Types[parameter], g, d.Values(s.Number, shard, 1, parameter))
	return g
}

// local returns the gradient that a rank has accumulated in its turn. Batch 0 is what it had
// before.
func (d *Definition) local(s *Step, rank, parameter int) []float64 {
	g := d.Values(s.Number, rank, 0, parameter)
	for batch, ready := range append(slices.Clone(s.Turns[rank].NoSync), s.Turns[rank].Last) {
		for _, i := range ready {
			if i == parameter {
				add(d.t.Types[parameter], g, d.Values(s.Number, rank, 1+batch, parameter))
			}
		}
	}
	return g
}

// add adds b to a, of a type.
func add(t ccl.DType, a, b []float64) {
	for j := range a {
		a[j] = rounded(t, a[j]+b[j])
	}
}

// isUsed reports whether a rank's gradient counts in a step: it was ready in some batch, and may
// be.
func (d *Definition) isUsed(s *Step, rank, parameter int) bool {
	ready := slices.Concat(append(slices.Clone(s.Turns[rank].NoSync), s.Turns[rank].Last)...)
	return slices.Contains(ready, parameter) && (d.first == nil || d.first == s || d.isUsed(d.first, rank, parameter))
}

// Step makes a step of the ranks that train, within Join or not, and returns the gradients that
// each of them has after Wait.
func (d *Definition) Step(s *Step, train []int, inJoin bool) (after map[int][][]float64) {
	if after = map[int][][]float64{}; d.t.Static && d.first == nil {
		d.first = s
	}

	for i, t := range d.t.Types {
		var locals [][]float64
		used := false
		for rank := range d.plan.Ranks {
			counts := slices.Contains(train, rank) && d.isUsed(s, rank, i)
			if used = used || counts || d.t.Static && d.isUsed(d.first, rank, i); counts {
				locals = append(locals, d.local(s, rank, i))
			}
		}
		contributions := len(train)
		if d.t.Shards > 0 {
			contributions, locals = d.t.Shards, nil
			for shard := range d.t.Shards {
				locals = append(locals, d.ofShard(s, shard, i))
			}
		}
		mean := d.addUp(i, locals, contributions, inJoin)
		for _, rank := range train {
			g := mean
			if !used && !d.t.Views { // no rank has used it: the program's gradient is unchanged
				g = d.local(s, rank, i)
			}
			after[rank] = append(after[rank], g)
			for j := range g {
				d.Data[rank][i][j] = rounded(t, d.Data[rank][i][j]-g[j])
			}
		}
	}
	if d.t.Shards > 0 {
		d.moveBuffers(s)
		return after
	}
	for _, rank := range train {
		add(d.t.Types[0], d.Buffers[rank], d.Values(s.Number, rank, 0, 0))
	}

	if d.t.Shares {
		d.shareBuffers(train[0])
	}
	return after
}

// moveBuffers moves buffers by the mean of what shards change, in float64.
func (d *Definition) moveBuffers(s *Step) {
	before := slices.Clone(d.Buffers[0])
	var changes [][]float64
	for shard := range d.t.Shards {
		now := slices.Clone(before)
		add(d.t.Types[0], now, d.Values(s.Number, shard, 0, 0))
		for j := range now {
			now[j] -= before[j]
		}
		changes = append(changes, now)
	}
	for j, sum := range addPairwise(ccl.Float64, changes) {
		for rank := range d.Buffers {
			d.Buffers[rank][j] = rounded(d.t.Types[0], before[j]+sum/float64(d.t.Shards))
		}
	}
}

func (d *Definition) shareBuffers(root int) {
	for rank := range d.Buffers {
		d.Buffers[rank] = slices.Clone(d.Buffers[root])
	}
}

// EndJoin gives all ranks the parameters and buffers of the lowest of those that trained longest.
func (d *Definition) EndJoin(counts []int) {
	root := slices.Index(counts, slices.Max(counts))
	for rank := range d.Data {
		for i := range d.Data[rank] {
			d.Data[rank][i] = slices.Clone(d.Data[root][i])
		}
	}
	d.shareBuffers(root)
}
