package stress

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/rowmajor"
	"github.com/goccl/goccl/partition"
	"github.com/goccl/goccl/primitive"
)

// Layout is a random operator of package primitive on random partitions and shapes. Its oracle is a
// table of which input elements each element of the result is the sum of, which is all of a linear
// operator that copies and adds; the adjoint is the transposed table.
type Layout struct {
	workers int
	kind    string
	x, y    team // the same in operators on one partition
	axes    []int
	dim     int   // of gathers and scatters
	shape   []int // of the whole tensor, or of each worker's
	halos   [][]primitive.Halo
	opts    []partition.Option
	strided bool
}

// team is a team, and how a tensor is divided among it.
type team struct {
	partition.Team
	cuts [][]int // where the parts of a tensor begin and end, in each dimension; nil: evenly
}

func (t team) String() string { return fmt.Sprintf("%d on workers %d", t.Shape, t.Workers) }

// index returns the index of a worker of the team.
func (t team) index(worker int) []int { return rowmajor.Index(t.Rank(worker), t.Shape) }

// at returns the worker with an index.
func (t team) at(index []int) int { return t.Workers[rowmajor.Rank(index, t.Shape)] }

func volume(shape []int) int {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	return n
}

// cell is an element of a worker's tensor.
type cell struct{ worker, at int }

// NewLayout returns the layout of a seed.
func NewLayout(seed uint64, workers int) *Layout {
	random := rand.New(rand.NewPCG(seed, uint64(workers)))
	l := &Layout{workers: workers, strided: random.IntN(3) == 0}
	kinds := []string{"all_sum_reduce", "broadcast", "sum_reduce", "repartition", "halo_exchange", "all_gather", "reduce_scatter"}
	l.kind = kinds[random.IntN(len(kinds))]
	dims := 1 + random.IntN(3)
	l.x = randomTeam(random, workers, dims)
	l.y = l.x
	l.shape = make([]int, 1+random.IntN(3))
	for d := range l.shape {
		l.shape[d] = random.IntN(5)
	}

	switch l.kind {
	case "all_sum_reduce":
		for axis := range dims {
			if random.IntN(2) == 0 {
				l.axes = append(l.axes, axis)
			}
		}

	case "broadcast", "sum_reduce":
		l.x = shrink(random, l.y, workers)
		if random.IntN(3) == 0 {
			slices.Reverse(l.y.Shape)
			l.opts = append(l.opts, partition.TransposeDest)
		}
		if random.IntN(3) == 0 {
			slices.Reverse(l.x.Shape)
			l.opts = append(l.opts, partition.TransposeSource)
		}

	case "repartition":
		l.y = randomTeam(random, workers, dims)
		l.shape = extentsFor(random, dims, 2)
		if random.IntN(2) == 0 {
			l.x.cuts = randomCuts(random, l.shape, l.x.Shape)
		}
	case "halo_exchange":
		l.shape = extentsFor(random, dims, 0)
		for d, n := range l.x.Shape {
			l.shape[d] += 2 * n // each worker has the 2 cells that a neighbour may need
			halos := make([]primitive.Halo, n)
			for i := range halos {
				halos[i] = primitive.Halo{Left: random.IntN(3), Right: random.IntN(3)}
			}
			l.halos = append(l.halos, halos)
		}
	case "all_gather", "reduce_scatter":
		l.axes = []int{random.IntN(dims)}
		l.dim = random.IntN(len(l.shape))
	}
	return l
}

func (l *Layout) String() string {
	return fmt.Sprintf("%s of %d from %v cut at %d to %v, axes %d, dimension %d, halos %v, options %v, strided %v",
		l.kind, l.shape, l.x, l.x.cuts, l.y, l.axes, l.dim, l.halos, l.opts, l.strided)
}

// extentsFor returns the extents of a tensor, each at least least.
func extentsFor(random *rand.Rand, dims, least int) []int {
	shape := make([]int, dims)
	for d := range shape {
		shape[d] = least + random.IntN(6)
	}
	return shape
}

// randomTeam returns some workers in any order, with a shape of that many dimensions.
func randomTeam(random *rand.Rand, workers, dims int) team {
	t := team{Team: partition.Team{Shape: slices.Repeat([]int{1}, dims)}}
	n := 1
	for d := range t.Shape {
		if f := 1 + random.IntN(3); n*f <= workers {
			t.Shape[d] = f
			n *= f
		}
	}
	t.Workers = random.Perm(workers)[:n]
	return t
}

// randomCuts divides each dimension of a tensor anywhere.
func randomCuts(random *rand.Rand, shape, workers []int) [][]int {
	cuts := make([][]int, len(shape))
	for d, extent := range shape {
		for range workers[d] - 1 {
			cuts[d] = append(cuts[d], random.IntN(extent+1))
		}
		cuts[d] = append(cuts[d], 0, extent)
		slices.Sort(cuts[d])
	}
	return cuts
}

// shrink returns a team that can be broadcast to another: with fewer dimensions, or 1 in some.
func shrink(random *rand.Rand, to team, workers int) team {
	shape := slices.Clone(to.Shape[random.IntN(len(to.Shape)):])
	for d := range shape {
		if random.IntN(2) == 0 {
			shape[d] = 1
		}
	}
	return team{Team: partition.Team{Workers: random.Perm(workers)[:volume(shape)], Shape: shape}}
}

// The two tensors of values.
const ofX, ofY = 1, 2

// fill returns a worker's tensor of values, or nil.
func (l *Layout) fill(what uint64, worker int, shape []int) *primitive.Tensor[float64] {
	if shape == nil {
		return nil
	}

	t := primitive.NewTensor[float64](shape...)
	if l.strided && len(shape) > 0 {
		wide := slices.Clone(shape)
		ranges := make([]ccl.Range, len(shape))
		for d, extent := range shape {
			wide[d] += 2
			ranges[d] = ccl.Range{Lo: 1, Hi: 1 + extent}
		}
		t = primitive.NewTensor[float64](wide...).Slice(ranges...)
	}

	for at := range volume(shape) {
		t.Set(value(what, cell{worker, at}), rowmajor.Index(at, shape)...)
	}
	return t
}

// Run makes the layout's operator on the ranks of c, and checks both directions, twice.
func (l *Layout) Run(ctx context.Context, c *ccl.Communicator) error {
	world, err := partition.New(ctx, c)
	if err != nil {
		return err
	}
	return errors.Join(l.run(ctx, world), world.Close()) // after an error the others learn of it by the Close
}

func (l *Layout) run(ctx context.Context, world *partition.Partition) error {
	op, err := l.build(ctx, world)
	if err != nil {
		return err
	}
	me := world.Rank()
	y, back := l.fill(ofY, me, l.output(me)), l.fill(ofX, me, l.input(me)) // memory for the results
	for range 2 {
		given := y
		if y, err = op.Forward(ctx, y, l.fill(ofX, me, l.input(me))); err != nil {
			return err
		}
		if given != nil && y != given {
			return fmt.Errorf("forward of %v does not use the tensor that it is given", l)
		}
		if err := l.compare("forward", y, l.output(me), l.forward(me)); err != nil {
			return err
		}

		if back, err = op.Adjoint(ctx, back, l.fill(ofY, me, l.output(me))); err != nil {
			return err
		}
		if err := l.compare("adjoint", back, l.input(me), l.adjoint(me)); err != nil {
			return err
		}
	}
	return op.Close()
}

func (l *Layout) compare(direction string, got *primitive.Tensor[float64], shape []int, want []float64) error {
	if shape == nil {
		shape = []int{0}
	}
	if !slices.Equal(got.Shape(), shape) {
		return fmt.Errorf("%s of %v: the shape is %d, want %d", direction, l, got.Shape(), shape)
	}
	for at := range want {
		if index := rowmajor.Index(at, shape); got.At(index...) != want[at] {
			return fmt.Errorf("%s of %v: element %d is %v, want %v", direction, l, index, got.At(index...), want[at])
		}
	}
	return nil
}

// on makes the partition of a team.
func on(ctx context.Context, world *partition.Partition, t team) (*partition.Partition, error) {
	p, err := world.Inclusive(ctx, t.Workers)
	if err != nil {
		return nil, err
	}
	return p.Cartesian(ctx, t.Shape...)
}

func (l *Layout) build(ctx context.Context, world *partition.Partition) (primitive.Operator[float64], error) {
	x, err := on(ctx, world, l.x)
	if err != nil {
		return nil, err
	}
	y, err := on(ctx, world, l.y)
	if err != nil {
		return nil, err
	}

	switch l.kind {
	case "all_sum_reduce":
		return primitive.NewAllSumReduce[float64](ctx, x, l.axes...)
	case "broadcast":
		return primitive.NewBroadcast[float64](ctx, x, y, l.opts...)
	case "sum_reduce":
		var swapped []partition.Option
		for _, o := range l.opts {
			swapped = append(swapped, partition.TransposeSource+partition.TransposeDest-o)
		}
		return primitive.NewSumReduce[float64](ctx, y, x, swapped...)
	// Operators without options.
	case "repartition":
		return primitive.NewRepartition[float64](ctx, x, y)
	case "all_gather":
		return primitive.NewAllGather[float64](ctx, x, l.axes[0], l.dim)
	case "reduce_scatter":
		return primitive.NewReduceScatter[float64](ctx, x, l.axes[0], l.dim)
	}

	var halos []primitive.Halo
	if x.Active() {
		for d, i := range x.Index() {
			halos = append(halos, l.halos[d][i])
		}
	}
	return primitive.NewHaloExchange[float64](ctx, x, halos...)
}
