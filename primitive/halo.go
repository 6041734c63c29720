package primitive

import (
	"context"
	"errors"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/rowmajor"
	"github.com/goccl/goccl/partition"
)

// Halo is the number of ghost cells of a worker's part of a tensor in one dimension.
type Halo struct{ Left, Right int }

// HaloExchange fills the ghost cells of a tensor with the cells of the neighbouring workers. Each
// worker's part is its own cells, with Left ghost cells before them and Right ones behind them in
// each dimension:
//
//	ghost | own cells                    | ghost
//	 Left |                              | Right
//
// The dimensions are exchanged one after another, each with the ghost cells of all others, so that
// corners arrive as well. Ghost cells at an edge of the partition have no neighbour: they pass
// through unchanged, forward and adjoint. They may hold padding.
//
// The adjoint adds the gradients of ghost cells to the cells that they are copies of, in the
// reverse order of dimensions, and sets those of ghost cells to 0.
//
// The result may be the input, in place.
type HaloExchange[T Number] struct {
	group          *group // nil on an inactive worker
	halos          [][]Halo
	shape, index   []int
	beside         []partition.Neighbors
	checked        [][]int // headers that fit together
	sent, received scratch[T]
	copies, ghosts part[T]
}

// NewHaloExchange makes the operator.
//
// All active workers of p call it, each with its own ghost cells: one Halo for each dimension of p,
// which the tensor has as well. The ghost cells in one dimension may differ between workers that
// are neighbours in it, and must be equal on those that are neighbours in another. On inactive
// workers it needs no communication.
//
// If some worker's halos are wrong, all get *ccl.InvalidArgumentError.
func NewHaloExchange[T Number](ctx context.Context, p *partition.Partition, halos ...Halo) (*HaloExchange[T], error) {
	if !p.Active() {
		return &HaloExchange[T]{}, nil
	}
	grid, err := p.Cartesian(ctx, p.Shape()...)
	if err != nil {
		return nil, err
	}
	all, err := partition.AllGatherData(ctx, grid, halos)
	if err == nil {
		err = checkHalos(all, grid)
	}

	if err != nil {
		return nil, errors.Join(err, grid.Close())
	}
	o := &HaloExchange[T]{group: newGroup(grid, haloExchange, 0), halos: all, shape: grid.Shape(), index: grid.Index()}
	o.beside, err = grid.NeighborsOf(grid.Rank())
	return o, err
}

// maxHalo bounds the ghost cells on one side.
const maxHalo = 1 << 30

// checkHalos checks the halos of all ranks of a partition.
func checkHalos(all [][]Halo, grid *partition.Partition) error {
	shape := grid.Shape()
	for rank, halos := range all {
		if len(halos) != len(shape) {
			return share(grid, haloExchange, []int{rank}, "rank %d has halos for %d dimensions, and the partition's shape %d has %d", rank, len(halos), shape, len(shape))
		}
		for d, h := range halos {
			if h.Left < 0 || h.Right < 0 || h.Left > maxHalo || h.Right > maxHalo {
				return share(grid, haloExchange, []int{rank}, "rank %d has the halo %d, %d in dimension %d: from 0 to %d cells are possible", rank, h.Left, h.Right, d, maxHalo)
			}
		}
	}

	for rank, halos := range all {
		for d := range shape {
			if first := onAxis(rank, d, shape); all[first][d] != halos[d] {
				return share(grid, haloExchange, []int{first, rank}, "the ranks %d and %d have the same place in dimension %d, and different halos there: %v and %v",
					first, rank, d, all[first][d], halos[d])
			}
		}
	}
	return nil
}

// onAxis returns the rank that has the same index as another in dimension d, and 0 in all others.
func onAxis(rank, d int, shape []int) int {
	index := make([]int, len(shape))
	index[d] = rowmajor.Index(rank, shape)[d]
	return rowmajor.Rank(index, shape)
}

// Forward implements Operator.
func (o *HaloExchange[T]) Forward(ctx context.Context, y, x *Tensor[T]) (*Tensor[T], error) {
	if o.group == nil {
		return none(y), nil
	}
	if err := o.begin(ctx, forward, x); err != nil {
		return nil, err
	}
	y = reuse(y, x.shape)
	if y != x {
		y.copy(x)
	}

	for d := range o.shape {
		if err := o.exchange(ctx, forward, y, d); err != nil {
			return nil, err
		}
	}
	return y, nil
}

// Adjoint implements Operator.
func (o *HaloExchange[T]) Adjoint(ctx context.Context, x, y *Tensor[T]) (*Tensor[T], error) {
	if o.group == nil {
		return none(x), nil
	}
	if err := o.begin(ctx, adjoint, y); err != nil {
		return nil, err
	}
	x = reuse(x, y.shape)
	if x != y {
		x.copy(y)
	}

	for d := len(o.shape) - 1; d >= 0; d-- {
		if err := o.exchange(ctx, adjoint, x, d); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Close implements Operator.
func (o *HaloExchange[T]) Close() error { return o.group.close() }

// begin exchanges headers, and checks that the parts fit together.
func (o *HaloExchange[T]) begin(ctx context.Context, c call, x *Tensor[T]) error {
	g := o.group
	if err := exchangeHeaders(ctx, g, c, x, true); err != nil {
		return err
	}
	for i, known := range o.checked {
		if slices.Equal(g.all, known) {
			o.checked[0], o.checked[i] = known, o.checked[0] // the next search finds it at once
			return nil
		}
	}
	if err := o.check(); err != nil {
		return err
	}
	o.checked = slices.Insert(o.checked, 0, slices.Clone(g.all))
	o.checked = o.checked[:min(len(o.checked), maxPlans)]
	return nil
}

// check returns why the parts of a tensor do not fit together: the same on all workers.
func (o *HaloExchange[T]) check() error {
	g := o.group
	if err := g.checkInputs(func(int) bool { return true }); err != nil {
		return err
	}
	if other := g.ranksThat(func(r int) bool { return len(g.dims(r)) != len(o.shape) }); other != nil {
		r := other[0]
		return g.share(other, "the part of rank %d has the shape %s with %d dimensions, and the partition's shape %d has %d", r, g.shapeText(r), len(g.dims(r)), o.shape, len(o.shape))
	}

	for r := range g.Size() {
		beside, _ := g.NeighborsOf(r)
		for d, h := range o.halos[r] {
			if first := onAxis(r, d, o.shape); g.dims(first)[d] != g.dims(r)[d] {
				return g.share([]int{first, r}, "the ranks %d and %d have the same place in dimension %d, and parts of different shapes: %s and %s", first, r, d, g.shapeText(first), g.shapeText(r))
			}
			inner := g.dims(r)[d] - h.Left - h.Right
			if inner < 0 {
				return g.share([]int{r}, "the part of rank %d has the shape %s, and its %d and %d ghost cells are more than that in dimension %d", r, g.shapeText(r), h.Left, h.Right, d)
			}

			for _, q := range [...]int{beside[d].Left, beside[d].Right} {
				if q == partition.None {
					continue
				}
				need := o.halos[q][d].Right
				if q == beside[d].Right {
					need = o.halos[q][d].Left
				}

				if need > inner {
					return g.share([]int{q, r}, "rank %d needs %d cells of rank %d in dimension %d, which has %d of its own", q, need, r, d, inner)
				}
			}
		}
	}
	return nil
}

// exchange exchanges the ghost cells of t in dimension d with both neighbours. Neighbours begin
// with each other: those of an even index with the one on the right.
func (o *HaloExchange[T]) exchange(ctx context.Context, c call, t *Tensor[T], d int) error {
	right := o.index[d]%2 == 0
	for range 2 {
		if err := o.exchangeWith(ctx, c, t, d, right); err != nil {
			return err
		}
		right = !right
	}
	return nil
}

func (o *HaloExchange[T]) exchangeWith(ctx context.Context, c call, t *Tensor[T], d int, right bool) error {
	n, h := t.shape[d], o.halos[o.group.Rank()][d]
	// Copies are the neighbour's ghost cells here; ghosts are this worker's.
	var peer int
	var copies, ghosts ccl.Range
	if right {
		if peer = o.beside[d].Right; peer == partition.None {
			return nil
		}
		copies = ccl.Range{Lo: n - h.Right - o.halos[peer][d].Left, Hi: n - h.Right}
		ghosts = ccl.Range{Lo: n - h.Right, Hi: n}
	} else {
		if peer = o.beside[d].Left; peer == partition.None {
			return nil
		}

		copies = ccl.Range{Lo: h.Left, Hi: h.Left + o.halos[peer][d].Right}
		ghosts = ccl.Range{Lo: 0, Hi: h.Left}
	}
	var ranges [MaxDims]ccl.Range
	for e := range d {
		ranges[e] = ccl.Range{Lo: 0, Hi: t.shape[e]}
	}

	ranges[d] = copies
	send := o.copies.of(t, ranges[:d+1])
	ranges[d] = ghosts
	recv := o.ghosts.of(t, ranges[:d+1])
	if c == adjoint {
		send, recv = recv, send
	}
	out := o.sent.packed(send)
	in := o.received.take(recv.Len())
	if err := swap(ctx, o.group, out, in, peer, d); err != nil {
		o.group.comm.Abort(err) // a message fails on its own: other workers would wait for this one
		return err
	}
	if c == forward {
		recv.copyOf(in)
		return nil
	}
	send.Fill(0)
	recv.addOf(in)
	return nil
}

// swap exchanges messages with a peer; those without elements are not sent.
func swap[T Number](ctx context.Context, g *group, out, in []T, peer, tag int) (err error) {
	switch {
	case len(out) > 0 && len(in) > 0:
		_, err = ccl.SendRecv(ctx, g.comm, out, peer, in, peer, tag, g.label)
	case len(out) > 0:
		err = ccl.Send(ctx, g.comm, out, peer, tag, g.label)
	case len(in) > 0:
		_, err = ccl.Recv(ctx, g.comm, in, peer, tag, g.label)
	}
	return err
}
