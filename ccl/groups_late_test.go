package ccl_test

import (
	"context"
	"errors"
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
			var aborted *ccl.AbortedError
			return errors.As(err, &aborted) && aborted.By == 1
		}},
		"closed": {func(ctx context.Context, ep transport.Endpoint) context.Context {
			_ = ep.Close()
			return ctx
		}, func(err error) bool {
			var lost *ccl.PeerLostError
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
