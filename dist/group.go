package dist

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// ProcessGroup is one rank's handle on a group of connected ranks. Its methods may be
// called from any goroutine, also after DestroyProcessGroup: they then describe the
// former group.
//
// A nil *ProcessGroup, which NewGroup returns to a rank that is no member, has no ranks: it never
// stands for the default group. Its methods that return an error return *InvalidArgumentError, as
// calls with WithGroup do.
//
// The groups that NewGroup and Split make of a default group end with it.
type ProcessGroup struct {
	rank    *rank
	comm    *ccl.Communicator
	backend string
	closed  interleave.Bool
}

// Rank returns the group rank of the handle's owner, or -1 if g is nil.
func (g *ProcessGroup) Rank() int { return g.Communicator().Rank() }

// Size returns the number of ranks in the group, or -1 if g is nil.
func (g *ProcessGroup) Size() int { return g.Communicator().Size() }

// Ranks returns the global ranks of the group's members, in the order of their group
// ranks, or nil if g is nil. The slice belongs to the caller.
func (g *ProcessGroup) Ranks() []int {
	if g.Communicator() == nil {
		return nil
	}
	ranks := make([]int, g.Size())
	for r := range ranks {
		ranks[r] = g.comm.GlobalRank(r)
	}
	return ranks
}

// GlobalRank returns the global rank of a group rank. In the default group they are the
// same. If g is nil or has no such rank the error is *InvalidArgumentError.
func (g *ProcessGroup) GlobalRank(rank int) (int, error) {
	if err := g.unmade(); err != nil {
		return 0, err
	}
	if rank < 0 || rank >= g.Size() {
		return 0, &InvalidArgumentError{
			Operation: "dist.global_rank",
			Message:   fmt.Sprintf("%d is not a rank of a group of %d (0 to %d)", rank, g.Size(), g.Size()-1),
		}
	}
	return g.comm.GlobalRank(rank), nil
}

// GroupRank returns the group rank of a global rank. In the default group they are the
// same. If g is nil or the rank is not in it the error is *InvalidArgumentError.
func (g *ProcessGroup) GroupRank(global int) (int, error) {
	if err := g.unmade(); err != nil {
		return 0, err
	}
	return g.groupRank("dist.group_rank", global)
}

// groupRank is GroupRank for an operation, which its error names.
func (g *ProcessGroup) groupRank(operation string, global int) (int, error) {
	if g.isDefault() && global >= 0 && global < g.Size() {
		return global, nil
	}
	for r := range g.Size() {
		if g.comm.GlobalRank(r) == global {
			return r, nil
		}
	}
	return 0, &InvalidArgumentError{
		Operation: operation,
		Message:   fmt.Sprintf("%d is not in the group of %s", global, transport.RanksText(g.Ranks())),
	}
}

// Communicator returns the group's communicator, for use with package ccl, whose ranks
// are group ranks. It belongs to the group: DestroyProcessGroup closes it. It is nil if g is nil.
func (g *ProcessGroup) Communicator() *ccl.Communicator {
	if g == nil {
		return nil
	}
	return g.comm
}

func (g *ProcessGroup) isDefault() bool { return g.comm.Name() == "" }

func (g *ProcessGroup) close() error {
	g.closed.Store(true)
	return g.comm.Close()
}

// failBy fails the group if a worker that has failed, nil for none, is that of a member, which
// may have left the group before.
func (g *ProcessGroup) failBy(failed *RankError) {
	if failed == nil {
		return
	}
	if by, err := g.GroupRank(failed.Rank); err == nil {
		g.comm.Abort(&AbortedError{By: by, Cause: failed.Err})
	}
}

// unmade returns an error if g is nil, or the zero value.
func (g *ProcessGroup) unmade() error {
	if g.Communicator() != nil {
		return nil
	}
	return &InvalidArgumentError{
		Operation: "dist.with_group",
		Message:   "the process group is nil: pass that of dist.Default, or call only on ranks for which dist.NewGroup returned a group",
	}
}

// usable returns an error if g, the group of WithGroup, cannot be used.
func (g *ProcessGroup) usable() error {
	if err := g.unmade(); err != nil {
		return err
	}
	if g.closed.Load() {
		return &explained{"", "the process group that dist.WithGroup names was destroyed; make another", []error{ErrNotInitialized, ErrClosed}}
	}
	return nil
}

// Default returns the default process group of the caller's rank. The handle
// works from any goroutine. Without a group the error is ErrNotInitialized, in a
// goroutine without a rank ErrUnbound.
func Default() (*ProcessGroup, error) {
	r, err := self()
	if err != nil {
		return nil, err
	}
	return r.current()
}

// IsInitialized reports whether the process group that GetRank, GetWorldSize and
// GetBackend describe exists. A group that has failed exists until DestroyProcessGroup.
func IsInitialized() bool {
	_, _, err := known()
	return err == nil
}

// GetRank returns the caller's rank. Before InitProcessGroup it returns
// ErrNotInitialized.
//
// In a goroutine without a rank, the result is the rank whose worker started the
// goroutine, if it still has the profiler labels that it inherited, otherwise 0; while
// several jobs run, it is ErrUnbound instead of 0.
func GetRank(opts ...CallOption) (int, error) {
	g, isOwn, err := askedGroup(opts)
	if err != nil || !isOwn {
		return 0, err
	}
	return g.Rank(), nil
}

// GetWorldSize returns the number of ranks in the group. Before InitProcessGroup it
// returns ErrNotInitialized.
func GetWorldSize(opts ...CallOption) (int, error) {
	g, _, err := askedGroup(opts)
	if err != nil {
		return 0, err
	}
	return g.Size(), nil
}

// GetBackend returns the backend's name, as passed to InitProcessGroup. Before
// InitProcessGroup it returns ErrNotInitialized.
func GetBackend(opts ...CallOption) (string, error) {
	g, _, err := askedGroup(opts)
	if err != nil {
		return "", err
	}
	return g.backend, nil
}

// askedGroup returns the group to describe; isOwn reports whether it is the caller's, not
// another rank's handle on it.
func askedGroup(opts []CallOption) (g *ProcessGroup, isOwn bool, err error) {
	if o := merge(opts); o.grouped {
		return o.group, true, o.group.usable()
	}
	return known()
}
