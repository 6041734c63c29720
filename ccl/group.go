package ccl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
	"github.com/goccl/goccl/transport"
)

// group is who the ranks of a communicator are, and what they have agreed on. It does not change
// once New has returned.
type group struct {
	ep         transport.Endpoint
	rank, size int
	name       string
	global     []int // ranks in the first group, by rank; nil: this is the first group
	selector   Selector
	level      *Level // of another group; nil: it is none
	isDebug    bool   // calls show their labels
	joined     uint64 // the calls that New made; users' calls count from there
}

// globalRank maps a rank to its rank in the first group.
func (g *group) globalRank(rank int) int {
	if g.global == nil {
		return rank
	}
	return g.global[rank]
}

// number returns the number of a call as users count: from 1, without the calls that New made.
func (g *group) number(seq uint64) uint64 { return seq - min(seq, g.joined) }

// entryName returns the name of the algorithm's entry that has the id.
func (g *group) entryName(id uint64) string {
	for _, name := range g.selector.Entries() {
		if fingerprint.EntryID(name) == id {
			return name
		}
	}
	return "none"
}

// cancelled is the error of a call whose context had ended before the call started.
func (g *group) cancelled(coll Collective, err error) error {
	return fmt.Errorf("ccl: %v: cancelled before the call began: %w", coll, err)
}

// closed returns the error of an operation of a communicator that Close has closed.
func (g *group) closed(operation string) error {
	return fmt.Errorf("ccl: %s: the communicator is %w", operation, ErrClosed)
}

// isOutside reports whether a rank stands for one of the job that is not in this group: package
// dist, which maps ranks of the job to those of the group, has -1 for it.
func (g *group) isOutside(rank int, o CallOption) bool {
	return rank == -1 && o.torch && g.global != nil
}

// outside says of a rank that isOutside.
func (g *group) outside() string {
	return "is not in the group of " + transport.RanksText(g.global)
}

func (g *group) checkRoot(a *arguments, opts []CallOption) error {
	if a.root >= 0 && a.root < g.size {
		return nil
	}
	invalid := &InvalidRootError{Root: a.root, Size: g.size}
	if g.isOutside(a.root, mergeCallOptions(opts)) {
		return &outsideError{fmt.Sprintf("ccl: %v: the root %s", a.coll, g.outside()), invalid}
	}
	return fmt.Errorf("ccl: %v: %w", a.coll, invalid)
}

func (g *group) checkLists(coll Collective, lists [][]int) error {
	if len(lists) > maxLists {
		return &InvalidArgumentError{coll.String(), fmt.Sprintf("%d lists: at most %d groups are made at once", len(lists), maxLists)}
	}

	for i, members := range lists {
		if err := g.checkMembers(members); err != nil {
			where := ""
			if coll == collForm {
				where = fmt.Sprintf("list %d: ", i)
			}
			return &InvalidArgumentError{coll.String(), where + err.Error()}
		}
	}
	return nil
}

// checkMembers checks the ranks of a group to be.
func (g *group) checkMembers(members []int) error {
	if len(members) == 0 {
		return errors.New("the group has no ranks")
	}

	named := make([]bool, g.size)
	for _, r := range members {
		switch {
		case r < 0 || r >= g.size:
			return fmt.Errorf("%d is not a rank of a group of %d (0 to %d)", r, g.size, g.size-1)
		case named[r]:
			return fmt.Errorf("rank %d is named twice", r)
		}
		named[r] = true
	}
	return nil
}

// connect returns the endpoint of a group of members.
func (g *group) connect(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	groups, ok := g.ep.(transport.Groups)
	if !ok {
		return nil, fmt.Errorf("the transport %s has no groups", g.ep.Name())
	}
	return groups.Group(ctx, number, members)
}

// placedRanks returns the endpoint if it knows on which nodes the ranks are, and there can be
// groups by node.
func (g *group) placedRanks() transport.Nodes {
	if placed, ok := g.ep.(transport.Nodes); ok && g.size > 1 && g.level == nil {
		return placed
	}
	return nil
}

// hosts returns the names of the hosts of ranks: "" for this rank's, nil if all are on that one.
func (g *group) hosts(ranks []int) (names []string) {
	placed, ok := g.ep.(transport.Nodes)
	if !ok {
		return nil
	}

	for _, rank := range ranks {
		names = append(names, placed.Host(rank))
	}
	if !slices.ContainsFunc(names, func(name string) bool { return name != "" }) {
		return nil
	}
	return names
}
