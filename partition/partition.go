package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/rowmajor"
)

// ErrInactive is the error of a call that only workers of the partition can make.
var ErrInactive = errors.New("this worker is not active in the partition")

// Partition is a worker's value of an ordered team of workers. The zero value is inactive.
type Partition struct {
	parent *Partition        // it was made of this one; nil for those of New
	comm   *ccl.Communicator // nil if this worker is inactive
	shape  []int
	order  int   // among the groups of one move
	open   *open // shared by all that were made of one New
}

// open holds the active partitions of a worker that are not closed.
type open struct {
	mu         interleave.Mutex
	partitions []*Partition // in the order in which they were made
}

// New returns the partition of all ranks of c, in their order. It is collective. The partition has
// a communicator of its own: c may be used and closed independently, and errors name ranks of c.
// Its Close ends all partitions that were made of it.
func New(ctx context.Context, c *ccl.Communicator) (*Partition, error) {
	var all []int
	if c != nil { // otherwise Form returns the error
		all = count(c.Size())
	}
	made, err := c.Form(ctx, [][]int{all})
	if err != nil {
		return nil, err
	}
	p := &Partition{comm: made[0], shape: []int{c.Size()}, open: new(open)}
	p.open.partitions = append(p.open.partitions, p)
	return p, nil
}

// child returns the partition of a communicator that was made of p's, inactive if it is nil.
func (p *Partition) child(comm *ccl.Communicator) *Partition {
	made := &Partition{parent: p, comm: comm}
	if p != nil && comm != nil {
		made.shape, made.open = []int{comm.Size()}, p.open
		p.open.mu.Lock()
		defer p.open.mu.Unlock()
		p.open.partitions = append(p.open.partitions, made)
	}
	return made
}

// Active reports whether this worker is in the team.
func (p *Partition) Active() bool { return p != nil && p.comm != nil }

// Size returns the number of workers, or 0 on an inactive worker.
func (p *Partition) Size() int {
	if !p.Active() {
		return 0
	}
	return p.comm.Size()
}

// Rank returns this worker's rank in the team, or -1 on an inactive worker.
func (p *Partition) Rank() int {
	if !p.Active() {
		return -1
	}
	return p.comm.Rank()
}

// Shape returns the number of workers in each dimension, or nil on an inactive worker. The slice
// belongs to the caller.
func (p *Partition) Shape() []int {
	if !p.Active() {
		return nil
	}
	return slices.Clone(p.shape)
}

// Index returns this worker's index in each dimension, or nil on an inactive worker. The slice
// belongs to the caller.
func (p *Partition) Index() []int {
	if !p.Active() {
		return nil
	}
	return rowmajor.Index(p.comm.Rank(), p.shape)
}

// Workers returns the team as ranks of the job, in the order of the partition, or nil on an
// inactive worker.
func (p *Partition) Workers() []int {
	if !p.Active() {
		return nil
	}
	workers := count(p.comm.Size())
	for r := range workers {
		workers[r] = p.comm.GlobalRank(r)
	}
	return workers
}

// Communicator returns the partition's communicator, whose ranks are those of the partition, or nil
// on an inactive worker. It is for operators that move tensors; Close closes it.
func (p *Partition) Communicator() *ccl.Communicator {
	if p == nil {
		return nil
	}
	return p.comm
}

// Equal reports whether two partitions have the same workers in the same order, and the same shape.
// An inactive worker cannot tell: there a partition equals only itself.
func (p *Partition) Equal(other *Partition) bool {
	if p == other {
		return true
	}
	return p.Active() && other.Active() && slices.Equal(p.shape, other.shape) && slices.Equal(p.Workers(), other.Workers())
}

// Close ends this worker's use of the partition.
//
// Partitions that were made of it continue to work, but no more can be made of it, nor between two
// whose common ancestor it is. Only the Close of a partition of New closes them as well, with the
// operators that use them. Closing twice, or an inactive partition, is a no-op.
func (p *Partition) Close() error {
	if !p.Active() {
		return nil
	}
	p.open.mu.Lock()
	defer p.open.mu.Unlock()
	if p.parent != nil {
		p.open.partitions = slices.DeleteFunc(p.open.partitions, func(made *Partition) bool { return made == p })
		return p.comm.Close()
	}

	var errs []error
	for _, made := range p.open.partitions {
		errs = append(errs, made.comm.Close())
	}
	p.open.partitions = nil
	return errors.Join(errs...)
}

// Inclusive returns the partition of some of the workers. ranks are their ranks in p, in the order
// of the new partition. On workers that are not among them, and where p is inactive, it is
// inactive.
func (p *Partition) Inclusive(ctx context.Context, ranks []int) (*Partition, error) {
	if !p.Active() {
		return p.child(nil), nil
	}
	made, err := p.comm.Form(ctx, [][]int{ranks})
	if err != nil {
		return nil, err
	}
	return p.child(made[0]), nil
}

// Cartesian returns a partition of the same workers with a shape, whose product is p.Size. Where p
// is inactive, so is the result.
func (p *Partition) Cartesian(ctx context.Context, shape ...int) (*Partition, error) {
	if !p.Active() {
		return p.child(nil), nil
	}
	if err := checkShape(shape, p.Size()); err != nil {
		return nil, p.comm.Reject(ctx, err)
	}
	if err := compareValue(ctx, p.comm, "shape", shape); err != nil {
		return nil, err
	}

	made, err := p.comm.Form(ctx, [][]int{count(p.Size())})
	if err != nil {
		return nil, err
	}
	c := p.child(made[0])
	c.shape = slices.Clone(shape)
	return c, nil
}

// Union returns the partition of the workers of p, followed by those workers of other that are not
// in p. All workers of the common ancestor call it, active or not.
func (p *Partition) Union(ctx context.Context, other *Partition) (*Partition, error) {
	ancestor, err := p.ancestor("union", other)
	if err != nil {
		return nil, err
	}
	if !ancestor.Active() {
		return ancestor.child(nil), nil
	}
	teams, err := ancestor.teams(ctx, "union", 0, p, other)
	if err != nil {
		return nil, err
	}
	return ancestor.Inclusive(ctx, union(teams[0].Workers, teams[1].Workers))
}

// ancestor returns the closest partition that p and other were both made of, or one of them.
// Partitions are made in the same order on all workers, so all find the same.
func (p *Partition) ancestor(operation string, other *Partition) (*Partition, error) {
	for a := p; a != nil; a = a.parent {
		for b := other; b != nil; b = b.parent {
			if a == b {
				return a, nil
			}
		}
	}
	return nil, invalid(operation, "the partitions have no common ancestor: make both of the same partition.New")
}

func invalid(operation, format string, args ...any) error {
	return &ccl.InvalidArgumentError{Operation: "partition." + operation, Message: fmt.Sprintf(format, args...)}
}

// share returns the error of all workers because of some, or of all alike if ranks is nil.
func (p *Partition) share(ranks []int, operation, format string, args ...any) error {
	return failure.Share(invalid(operation, format, args...), p.Workers(), ranks...)
}
