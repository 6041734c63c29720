package stress

import (
	"math/rand/v2"
	"slices"
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

// rounded returns x as an element of the training's type has it.
func (d *Definition) rounded(x float64) float64 {
	if d.t.Double {
		return x
	}
	return float64(float32(x))
}

// Values returns what a rank adds to a gradient in a batch: thirds, whose sums depend on their order.
func (d *Definition) Values(step, rank, batch, parameter int) []float64 {
	seed := rand.NewPCG(d.plan.Seed<<16+uint64(d.t.Number<<8+step), uint64(rank<<16+batch<<8+parameter))
	base := rand.New(seed).IntN(1000)
	v := make([]float64, d.t.Lengths[parameter])
	for j := range v {
		v[j] = d.rounded(float64(base+j%97-500) / 3)
	}
	return v
}

// local returns the gradient that a rank has accumulated in its turn. Batch 0 is what it had before.
func (d *Definition) local(s *Step, rank, parameter int) []float64 {
	g := d.Values(s.Number, rank, 0, parameter)
	for batch, ready := range append(slices.Clone(s.Turns[rank].Quiet), s.Turns[rank].Last) {
		for _, i := range ready {
			if i == parameter {
				d.add(g, d.Values(s.Number, rank, 1+batch, parameter))
			}
		}
	}
	return g
}

func (d *Definition) add(a, b []float64) {
	for j := range a {
		a[j] = d.rounded(a[j] + b[j])
	}
}

// isUsed reports whether a rank's gradient counts in a step: it was ready in some batch, and may be.
func (d *Definition) isUsed(s *Step, rank, parameter int) bool {
	ready := slices.Concat(append(slices.Clone(s.Turns[rank].Quiet), s.Turns[rank].Last)...)
	return slices.Contains(ready, parameter) && (d.first == nil || d.first == s || d.isUsed(d.first, rank, parameter))
}

// Step makes a step of the ranks that train, and returns the gradients that each of them has after Wait.
func (d *Definition) Step(s *Step, train []int) (after map[int][][]float64) {
	if after = map[int][][]float64{}; d.t.Static && d.first == nil {
		d.first = s
	}
	for i, length := range d.t.Lengths {
		mean, used := make([]float64, length), false
		for rank := range d.plan.Ranks {
			counts := slices.Contains(train, rank) && d.isUsed(s, rank, i)
			if used = used || counts || d.t.Static && d.isUsed(d.first, rank, i); counts {
				d.add(mean, d.local(s, rank, i))
			}
		}
		for j := range mean {
			if mean[j] = d.rounded(mean[j] / float64(len(train))); d.t.Hooked {
				mean[j] = -mean[j]
			}
		}
		for _, rank := range train {
			g := mean
			if !used && !d.t.Views { // no rank has used it: the program's gradient is unchanged
				g = d.local(s, rank, i)
			}
			after[rank] = append(after[rank], g)
			for j := range g {
				d.Data[rank][i][j] = d.rounded(d.Data[rank][i][j] - g[j])
			}
		}
	}
	for _, rank := range train {
		d.add(d.Buffers[rank], d.Values(s.Number, rank, 0, 0))
	}
	if d.t.Shares {
		d.shareBuffers(train[0])
	}
	return after
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
