package partition

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// team is what all workers know of a partition after a muster.
type team struct {
	members []int // ranks of the ancestor
	shape   []int
}

// muster tells all workers of p who is in some partitions that were made of it. It fails on all alike if
// they make different calls. A partition without workers has the shape [0].
func (p *Partition) muster(ctx context.Context, operation string, how Option, parts ...*Partition) ([]team, error) {
	if err := agree(ctx, p.comm, "call", fmt.Sprintf("%s with options %d", operation, how)); err != nil {
		return nil, err
	}
	teams := make([]team, len(parts))
	for i, part := range parts {
		var mine []int // rank and shape
		if part.Active() {
			mine = append([]int{part.Rank()}, part.shape...)
		}
		all, err := gather(ctx, p.comm, mine)
		if err != nil {
			return nil, err
		}
		if teams[i], err = p.assemble(operation, all); err != nil {
			return nil, err
		}
	}
	return teams, nil
}

// assemble makes a team of what the workers of p say: each active one its rank and the shape.
func (p *Partition) assemble(operation string, all [][]int) (team, error) {
	t := team{shape: []int{0}}
	shapes := &ccl.MismatchError{Field: "shape"}
	for worker, said := range all {
		if said != nil {
			t.shape = said[1:]
			shapes.Add(worker, fmt.Sprint(t.shape))
		}
	}
	if len(shapes.Values) > 1 {
		return team{}, shapes
	}
	t.members = slices.Repeat([]int{-1}, product(t.shape))
	for worker, said := range all {
		if said == nil {
			continue
		}
		if other := t.members[said[0]]; other >= 0 {
			return team{}, wrong(operation, "workers pass different partitions: workers %d and %d are both rank %d of it", other, worker, said[0])
		}
		t.members[said[0]] = worker
	}
	if rank := slices.Index(t.members, -1); rank >= 0 {
		return team{}, wrong(operation, "workers pass different partitions: no worker is rank %d of %d", rank, len(t.members))
	}
	return t, nil
}

// agree returns *ccl.MismatchError on all ranks if they have different values.
func agree(ctx context.Context, c *ccl.Communicator, field string, value any) error {
	all, err := gather(ctx, c, []byte(fmt.Sprint(value)))
	if err != nil {
		return err
	}
	m := &ccl.MismatchError{Field: field}
	for r, text := range all {
		m.Add(r, string(text))
	}
	if len(m.Values) > 1 {
		return m
	}
	return nil
}

// gather returns the lists of all ranks.
func gather[T ccl.Element](ctx context.Context, c *ccl.Communicator, mine []T) ([][]T, error) {
	lengths := make([]int, c.Size())
	if err := ccl.AllGather(ctx, c, []int{len(mine)}, lengths); err != nil {
		return nil, err
	}
	total := 0
	for _, n := range lengths {
		total += n
	}
	lists := make([][]T, c.Size())
	if total == 0 {
		return lists, nil
	}
	all := make([]T, total)
	if err := ccl.AllGatherV(ctx, c, mine, all, lengths, nil); err != nil {
		return nil, err
	}
	for r, n := range lengths {
		if n > 0 {
			lists[r] = all[:n:n]
		}
		all = all[n:]
	}
	return lists, nil
}
