package dist

import (
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// ProcessGroup is one rank's handle on a group of ranks that are connected. Its
// methods may be called from any goroutine and never fail for being late: after
// DestroyProcessGroup they still say what the group was.
//
// A rank has its default group and those that NewGroup and Split have made of it,
// which end with it.
type ProcessGroup struct {
	rank    *rank
	comm    *ccl.Communicator
	backend string
	closed  atomic.Bool
}

// Rank returns the group rank of the rank whose handle this is.
func (g *ProcessGroup) Rank() int { return g.comm.Rank() }

// Size returns the number of ranks in the group.
func (g *ProcessGroup) Size() int { return g.comm.Size() }

// Ranks returns the job's ranks that are in the group, in the order of their group
// ranks. The slice belongs to the caller.
func (g *ProcessGroup) Ranks() []int {
	ranks := make([]int, g.Size())
	for r := range ranks {
		ranks[r] = g.comm.GlobalRank(r)
	}
	return ranks
}

// GlobalRank returns the job's rank that is rank number rank of the group. In
// the default group they are the same. For a number that is no rank of the
// group it returns *InvalidArgumentError.
func (g *ProcessGroup) GlobalRank(rank int) (int, error) {
	if rank < 0 || rank >= g.Size() {
		return 0, &InvalidArgumentError{
			Operation: "global_rank",
			Message:   fmt.Sprintf("%d is not a rank of a group of %d (0 to %d)", rank, g.Size(), g.Size()-1),
		}
	}
	return g.comm.GlobalRank(rank), nil
}

// GroupRank returns the group rank of the job's rank number global. In the default
// group they are the same. For a rank that is not in the group it returns
// *InvalidArgumentError.
func (g *ProcessGroup) GroupRank(global int) (int, error) {
	if g.isDefault() && global >= 0 && global < g.Size() {
		return global, nil
	}
	for r := range g.Size() {
		if g.comm.GlobalRank(r) == global {
			return r, nil
		}
	}
	return 0, &InvalidArgumentError{
		Operation: "group_rank",
		Message:   fmt.Sprintf("%d is not in the group of %s", global, transport.RanksText(g.Ranks())),
	}
}

// Communicator returns the group's communicator, for package ccl's form of the
// collectives. It belongs to the group: it is closed by DestroyProcessGroup. Its ranks are
// group ranks.
func (g *ProcessGroup) Communicator() *ccl.Communicator { return g.comm }

func (g *ProcessGroup) isDefault() bool { return g.comm.Name() == "" }

func (g *ProcessGroup) close() error {
	g.closed.Store(true)
	return g.comm.Close()
}

// usable says why g, which a caller has named, cannot be used.
func (g *ProcessGroup) usable() error {
	switch {
	case g == nil:
		return &InvalidArgumentError{
			Operation: "with_group",
			Message:   "the process group is nil: pass one from dist.Default, or leave the call to the ranks that dist.NewGroup has given one",
		}
	case g.closed.Load():
		return fmt.Errorf("dist: the process group that WithGroup names was destroyed: %w: %w", ErrNotInitialized, ErrClosed)
	}
	return nil
}

// Default returns the default process group of the caller's rank. The handle
// works from any goroutine. Without one the error is ErrNotInitialized, in a
// goroutine without a rank ErrUnbound.
func Default() (*ProcessGroup, error) {
	r, err := self()
	if err != nil {
		return nil, err
	}
	return r.current()
}

// IsInitialized reports whether there is a process group that GetRank,
// GetWorldSize and GetBackend answer for. It never fails. A group that has
// failed is there until DestroyProcessGroup.
func IsInitialized() bool {
	_, _, err := known()
	return err == nil
}

// GetRank returns the caller's rank. Before InitProcessGroup it returns
// ErrNotInitialized.
//
// In a goroutine that has no rank of its own, the answer is the rank whose
// worker started it, if it has still the profiler labels it inherited from it,
// and otherwise 0. Where several jobs live it is ErrUnbound instead of 0.
func GetRank(opts ...CallOption) (int, error) {
	g, own, err := askedGroup(opts)
	if err != nil || !own {
		return 0, err
	}
	return g.Rank(), nil
}

// GetWorldSize returns the number of ranks, as ccl.yaml resolved it (see the
// package comment for who is asked). Before InitProcessGroup it returns
// ErrNotInitialized.
func GetWorldSize(opts ...CallOption) (int, error) {
	g, _, err := askedGroup(opts)
	if err != nil {
		return 0, err
	}
	return g.Size(), nil
}

// GetBackend returns the name that was given to InitProcessGroup. Before it the
// error is ErrNotInitialized.
func GetBackend(opts ...CallOption) (string, error) {
	g, _, err := askedGroup(opts)
	if err != nil {
		return "", err
	}
	return g.backend, nil
}

// askedGroup returns the group that a question is about; own says that it is
// the caller's, and not just one like it.
func askedGroup(opts []CallOption) (g *ProcessGroup, own bool, err error) {
	if o := merge(opts); o.grouped {
		return o.group, true, o.group.usable()
	}
	return known()
}
