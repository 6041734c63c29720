package partition

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/internal/rowmajor"
)

// None stands for the neighbour of a worker at an edge.
const None = -1

// Neighbors are the ranks beside a worker in one dimension. At an edge the one outside is None: no
// dimension is closed to a ring.
type Neighbors struct {
	Left  int // the rank with an index of one less
	Right int // the rank with an index of one more
}

// IndexOf returns the index of the worker with a rank. It returns ErrInactive or
// *ccl.InvalidArgumentError.
func (p *Partition) IndexOf(rank int) ([]int, error) {
	if err := p.checkRank("index_of", rank); err != nil {
		return nil, err
	}
	return rowmajor.Index(rank, p.shape), nil
}

// RankOf returns the rank of the worker with an index. It returns ErrInactive or
// *ccl.InvalidArgumentError.
func (p *Partition) RankOf(index ...int) (int, error) {
	if !p.Active() {
		return 0, fmt.Errorf("partition: rank_of: %w", ErrInactive)
	}
	if len(index) != len(p.shape) {
		return 0, invalid("rank_of", "the index %d has %d dimensions, and the shape %d has %d", index, len(index), p.shape, len(p.shape))
	}
	for d, i := range index {
		if i < 0 || i >= p.shape[d] {
			return 0, invalid("rank_of", "the index %d is outside the shape %d", index, p.shape)
		}
	}
	return rowmajor.Rank(index, p.shape), nil
}

// NeighborsOf returns the neighbours of the worker with a rank, in each dimension. It returns
// ErrInactive or *ccl.InvalidArgumentError.
func (p *Partition) NeighborsOf(rank int) ([]Neighbors, error) {
	if err := p.checkRank("neighbors_of", rank); err != nil {
		return nil, err
	}
	return neighborsOf(rank, p.shape), nil
}

func (p *Partition) checkRank(operation string, rank int) error {
	switch {
	case !p.Active():
		return fmt.Errorf("partition: %s: %w", operation, ErrInactive)
	case rank < 0 || rank >= p.Size():
		return invalid(operation, "%d is not a rank of a partition of %d (0 to %d)", rank, p.Size(), p.Size()-1)
	}
	return nil
}

// Sub divides a partition into slices (MPI_Cart_sub). The result has the dimensions that kept
// marks, and the workers whose index in all others is the same as this worker's.
//
// kept has an element for each dimension. On an inactive worker Sub returns an inactive partition
// and ErrInactive, without communication.
func (p *Partition) Sub(ctx context.Context, kept ...bool) (*Partition, error) {
	if !p.Active() {
		return p.child(nil), fmt.Errorf("partition: sub: %w", ErrInactive)
	}
	if len(kept) != len(p.shape) {
		return nil, p.comm.Reject(ctx, invalid("sub", "%d dimensions are marked, and the shape %d has %d", len(kept), p.shape, len(p.shape)))
	}
	axes, shape := []int{}, []int{}
	for d, isKept := range kept {
		if isKept {
			axes, shape = append(axes, d), append(shape, p.shape[d])
		}
	}

	if err := compareValue(ctx, p.comm, "kept dimensions", axes); err != nil {
		return nil, err
	}
	group, err := p.groupAlong(ctx, axes)
	if err != nil {
		return nil, err
	}
	group.shape = shape
	return group, nil
}

// groupAlong returns the partition of the workers that differ from this one only in the axes.
func (p *Partition) groupAlong(ctx context.Context, axes []int) (*Partition, error) {
	lists := reductions(p.shape, axes)
	made, err := p.comm.Form(ctx, lists)
	if err != nil {
		return nil, err
	}
	for _, comm := range made {
		if comm != nil {
			return p.child(comm), nil
		}
	}
	panic("every worker is in one group")
}
