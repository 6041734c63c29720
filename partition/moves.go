package partition

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// Option is an option of BroadcastTo and ReductionTo.
type Option uint8

// The options. Dimensions are reversed before those of 1 are added on the left, and only to find
// which dimensions match: the workers of a partition stay in the order of their ranks.
const (
	TransposeSource Option = 1 << iota // reverse the dimensions of the partition that data comes from
	TransposeDest                      // reverse the dimensions of the partition that data goes to
)

// AllReduction returns this worker's group for an all-reduce over some dimensions: the workers that
// differ from it only in these, in ascending order. There are as many groups as the other
// dimensions have workers; without axes each worker is its own group, and with all axes there is
// one.
//
// On an inactive worker it returns an inactive partition and ErrInactive, without communication.
// Rejected with *ccl.InvalidArgumentError: an axis that is out of range or named twice.
func (p *Partition) AllReduction(ctx context.Context, axes ...int) (*Partition, error) {
	if !p.Active() {
		return p.child(nil), fmt.Errorf("partition: all_reduction: %w", ErrInactive)
	}
	if err := checkAxes("all_reduction", axes, p.shape); err != nil {
		return nil, p.comm.Reject(ctx, err)
	}
	return p.groupAlong(ctx, axes)
}

// BroadcastTo returns this worker's groups for broadcasts from p to y.
//
// send is the group in which it sends its data, as rank 0, if it is active in p; recv is the group
// in which it receives, from rank 0, if it is active in y. If it receives from itself the two are
// the same value. Groups that this worker is not in are inactive.
//
// p may have at most as many dimensions as y. p's shape, with dimensions of 1 added on the left,
// must be y's, except that p may have 1 where y has more.
//
// All workers of the common ancestor call BroadcastTo, active or not. If the shapes do not fit, all
// get *ccl.InvalidArgumentError.
func (p *Partition) BroadcastTo(ctx context.Context, y *Partition, opts ...Option) (send, recv *Partition, err error) {
	return p.move(ctx, "broadcast_to", y, opts, func(x, y Team, how Option) (move, error) {
		from, err := sources(x.Shape, y.Shape, how)
		if err != nil {
			return move{}, err
		}
		return move{groups(x.Workers, y.Workers, from, union(x.Workers, y.Workers)), count(len(x.Workers)), from}, nil
	})
}

// ReductionTo returns this worker's groups for reductions from p to y: the reverse of a broadcast
// from y to p. send is the group in which it contributes, if it is active in p; recv is the group
// in which it receives the result, as rank 0, if it is active in y.
//
// y may have at most as many dimensions as p. y's shape, with dimensions of 1 added on the left,
// must be p's, except that y may have 1 where p has more.
//
// All workers of the common ancestor call ReductionTo, active or not. If the shapes do not fit, all
// get *ccl.InvalidArgumentError.
func (p *Partition) ReductionTo(ctx context.Context, y *Partition, opts ...Option) (send, recv *Partition, err error) {
	return p.move(ctx, "reduction_to", y, opts, func(x, y Team, how Option) (move, error) {
		reverse := how&TransposeSource<<1 | how&TransposeDest>>1
		to, err := sources(y.Shape, x.Shape, reverse)
		if err != nil {
			return move{}, err
		}
		return move{groups(y.Workers, x.Workers, to, union(x.Workers, y.Workers)), to, count(len(y.Workers))}, nil
	})
}

// move is how data moves between two partitions.
type move struct {
	groups [][]int // of workers, roots first
	sends  []int   // for each worker of the source, its group
	recvs  []int   // for each worker of the destination, its group
}

// move makes the groups of a move from p to y, by a rule.
func (p *Partition) move(ctx context.Context, operation string, y *Partition, opts []Option, rule func(x, y Team, how Option) (move, error)) (send, recv *Partition, err error) {
	ancestor, err := p.ancestor(operation, y)
	if err != nil {
		return nil, nil, err
	}
	if !ancestor.Active() {
		return ancestor.child(nil), ancestor.child(nil), nil
	}
	var how Option
	for _, o := range opts {
		how |= o
	}

	teams, err := ancestor.teams(ctx, operation, how, p, y)
	if err != nil {
		return nil, nil, err
	}
	if len(teams[0].Workers) == 0 || len(teams[1].Workers) == 0 {
		return nil, nil, ancestor.share(nil, operation, "one of the partitions has no workers")
	}
	m, err := rule(teams[0], teams[1], how)
	if err != nil {
		return nil, nil, ancestor.share(nil, operation, "%v", err)
	}

	made, err := ancestor.comm.Form(ctx, m.groups)
	if err != nil {
		return nil, nil, err
	}
	send, recv = ancestor.child(nil), ancestor.child(nil)
	if i := teams[0].Rank(ancestor.Rank()); i >= 0 {
		send = ancestor.group(made, m.sends[i])
	}

	if i := teams[1].Rank(ancestor.Rank()); i >= 0 {
		if recv = ancestor.group(made, m.recvs[i]); recv.comm == send.comm {
			recv = send
		}
	}
	return send, recv, nil
}

// group returns the partition of a group of a move.
func (p *Partition) group(made []*ccl.Communicator, order int) *Partition {
	g := p.child(made[order])
	g.order = order
	return g
}

// InOrder returns the active groups among the two that BroadcastTo or ReductionTo returned, each
// once, in the order of their roots. If all workers make their calls in this order, none waits for
// another in a circle.
func InOrder(send, recv *Partition) []*Partition {
	var groups []*Partition
	for _, p := range [...]*Partition{send, recv} {
		if p.Active() && !slices.Contains(groups, p) {
			groups = append(groups, p)
		}
	}
	slices.SortFunc(groups, func(a, b *Partition) int { return a.order - b.order })
	return groups
}
