package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/stretchr/testify/require"
)

// seatless is an endpoint whose rank does something between the call that makes a group and
// taking its seat there.
type seatless struct {
	transport.Endpoint
	instead func(context.Context, transport.Endpoint) context.Context
}

func (s seatless) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return s.Endpoint.(transport.Groups).Group(s.instead(ctx, s.Endpoint), number, members)
}

// If a member does not take its seat in a new group, for whatever reason, the group fails on the
// members that have.
func TestMemberThatDoesNotCome(t *testing.T) {
	for name, c := range map[string]struct {
		instead func(context.Context, transport.Endpoint) context.Context
		as      func(error) bool
	}{
		"cancelled": {func(ctx context.Context, _ transport.Endpoint) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errors.New("the user pressed stop"))
			return ctx
		}, func(err error) bool {
			var aborted *transport.AbortedError
			return errors.As(err, &aborted) && aborted.By == 1
		}},
		"closed": {func(ctx context.Context, ep transport.Endpoint) context.Context {
			_ = ep.Close()
			return ctx
		}, func(err error) bool {
			var lost *transport.PeerLostError
			return errors.As(err, &lost) && lost.Rank == 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, func(t *testing.T, connect connector) {
				var seated sync.WaitGroup
				seated.Add(2)
				g := group(t, func(n int) ([]transport.Endpoint, error) {
					eps, err := connect(n)
					for i, ep := range eps {
						if i == 1 {
							eps[i] = seatless{ep, func(ctx context.Context, ep transport.Endpoint) context.Context {
								seated.Wait()
								return c.instead(ctx, ep)
							}}
						} else {
							eps[i] = signalling{ep, seated.Done}
						}
					}
					return eps, err
				}, 3)
				errs := each(3, func(r int) error {
					made, err := g[r].NewGroup(bg, []int{0, 1, 2})
					closing(t, made)
					return err
				})
				require.Error(t, errs[1])
				for _, r := range []int{0, 2} {
					require.True(t, c.as(errs[r]), "rank %d: %v", r, errs[r])
				}
			})
		})
	}
}

// signalling is an endpoint that signals when it has taken its seat in a group.
type signalling struct {
	transport.Endpoint
	seated func()
}

func (s signalling) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	ep, err := s.Endpoint.(transport.Groups).Group(ctx, number, members)
	s.seated()
	return ep, err
}

// If the group fails by a rank that is not a member while the members of a new one meet, they get that failure.
func TestGroupFailsWhileMembersMeet(t *testing.T) {
	gaveUp := errors.New("no shard")
	for name, form := range map[string]func(c *ccl.Communicator) (*ccl.Communicator, error){
		"new_group": func(c *ccl.Communicator) (*ccl.Communicator, error) { return c.NewGroup(bg, []int{0, 1}) },
		"split":     func(c *ccl.Communicator) (*ccl.Communicator, error) { return c.Split(bg, -(c.Rank() / 2), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, func(t *testing.T, connect connector) {
				failed := make(chan struct{})
				g := group(t, func(n int) ([]transport.Endpoint, error) {
					eps, err := connect(n)
					for i, ep := range eps {
						eps[i] = seatless{ep, func(ctx context.Context, _ transport.Endpoint) context.Context {
							<-failed
							return ctx
						}}
					}
					return eps, err
				}, 3)
				errs := each(3, func(r int) error {
					made, err := form(g[r])
					if r == 2 {
						g[r].Abort(gaveUp)
						close(failed)
					}
					closing(t, made)
					return err
				})
				require.NoError(t, errs[2])
				for r, err := range errs[:2] {
					var aborted *transport.AbortedError
					require.ErrorAs(t, err, &aborted)
					require.Equal(t, 2, aborted.By)
					var call *ccl.CallError
					require.ErrorAs(t, err, &call)
					require.Equal(t, name, call.Operation)
					require.EqualValues(t, 1, call.Seq)
					require.Regexp(t, fmt.Sprintf(`^ccl: %s, call 1 at ccl/groups_late_test.go:\d+, rank %d: making the group: aborted by rank 2: no shard$`, name, r), err.Error())
				}
			})
		})
	}
}

// A rank that cannot set up a group for a reason of its own gets that, also if another rank fails the outer group because of it.
func TestOwnReasonOutlivesTheGroup(t *testing.T) {
	for name, form := range map[string]func(c *ccl.Communicator) error{
		"new_group": func(c *ccl.Communicator) error { _, err := c.NewGroup(bg, []int{0, 1}); return err },
		"split":     func(c *ccl.Communicator) error { _, err := c.Split(bg, 0, 0); return err },
		"form":      func(c *ccl.Communicator) error { _, err := c.Form(bg, [][]int{{1, 0}}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, func(t *testing.T, connect connector) {
				g := group(t, func(n int) ([]transport.Endpoint, error) {
					eps, err := connect(n)
					eps[0] = unable{eps[0]}
					return eps, err
				}, 2)
				errs := each(2, func(r int) error { return form(g[r]) })
				var none *transport.AllocationFailedError
				require.ErrorAs(t, errs[0], &none)
				var lost *transport.PeerLostError
				require.False(t, errors.As(errs[0], &lost), "%v", errs[0])
			})
		})
	}
}

// unable is an endpoint that has no memory for groups. Before it says so its group has failed.
type unable struct{ transport.Endpoint }

func (u unable) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = u.Endpoint.(transport.Groups).Group(cancelled, number, members)
	u.Fail(&transport.Failure{Kind: transport.FailurePeerLost, By: 1, Ranks: []int{1}})
	return nil, &transport.AllocationFailedError{RequestedBytes: 4096, Message: "map: cannot allocate memory"}
}
