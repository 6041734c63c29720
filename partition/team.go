package partition

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
)

// A Team is what all workers of a partition p know of another one after p.Teams: its active workers
// and its shape.
type Team struct {
	Workers []int // their ranks in p, in the order of the other partition
	Shape   []int // [0] if the team has no workers
}

// Rank returns a worker's rank in the team, or -1 if it is not in the team.
func (t Team) Rank(worker int) int { return slices.Index(t.Workers, worker) }

// Teams returns who is active in other partitions. All active workers of p call it, each with its
// values of the same partitions, which may be inactive or nil; all active workers of these are
// workers of p.
//
// Returns ErrInactive on an inactive worker of p, without communication. If workers pass different
// partitions, all get *ccl.MismatchError or *ccl.InvalidArgumentError.
func (p *Partition) Teams(ctx context.Context, others ...*Partition) ([]Team, error) {
	if !p.Active() {
		return nil, fmt.Errorf("partition: teams: %w", ErrInactive)
	}
	return p.teams(ctx, "teams", 0, others...)
}

// seat is the part of a worker in a team.
type seat struct {
	Rank  int // -1: it has none
	Shape []int
}

// teams is Teams within another call, which all workers make with the same options.
func (p *Partition) teams(ctx context.Context, operation string, how Option, others ...*Partition) ([]Team, error) {
	call := []agree.Fact{{Name: "call", Value: fmt.Sprintf("%s with options %d", operation, how)}, {Name: "partitions", Value: fmt.Sprint(len(others))}}
	if err := agree.Compare(ctx, p.comm, nil, call); err != nil {
		return nil, err
	}
	var seats []seat
	for _, other := range others {
		seats = append(seats, seat{other.Rank(), other.Shape()})
	}
	all, err := gather(ctx, p.comm, operation, seats)
	if err != nil {
		return nil, err
	}

	teams := make([]Team, len(others))
	for i := range teams {
		if teams[i], err = p.assemble(operation, i, all); err != nil {
			return nil, err
		}
	}
	return teams, nil
}

// assemble makes a team of the seats of all workers in it.
func (p *Partition) assemble(operation string, number int, all [][]seat) (Team, error) {
	t := Team{Shape: []int{0}}
	shapes := map[int]string{}
	for worker, seats := range all {
		if s := seats[number]; s.Rank >= 0 {
			t.Shape = s.Shape
			shapes[worker] = fmt.Sprint(s.Shape)
		}
	}
	if err := agree.Difference(p.comm, "shape", shapes); err != nil {
		return Team{}, err
	}

	t.Workers = slices.Repeat([]int{-1}, product(t.Shape))
	for worker, seats := range all {
		s := seats[number]
		if s.Rank < 0 {
			continue
		}
		if other := t.Workers[s.Rank]; other >= 0 {
			return Team{}, p.share([]int{other, worker}, operation, "workers pass different partitions: workers %d and %d are both rank %d of it", other, worker, s.Rank)
		}
		t.Workers[s.Rank] = worker
	}

	if rank := t.Rank(-1); rank >= 0 {
		return Team{}, p.share(nil, operation, "workers pass different partitions: no worker is rank %d of %d", rank, len(t.Workers))
	}
	return t, nil
}

// compareValue returns *ccl.MismatchError on all ranks if they have different values.
func compareValue(ctx context.Context, c *ccl.Communicator, name string, value any) error {
	return agree.Compare(ctx, c, nil, []agree.Fact{{Name: name, Value: fmt.Sprint(value)}})
}
