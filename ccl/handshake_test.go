package ccl_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// stopped is an endpoint whose rank stops at its first Enter: before is called when it
// comes, and after when it is about to return.
type stopped struct {
	transport.Endpoint
	before, after func()
	once          bool
}

func (s *stopped) Enter(e *transport.Arrival) (transport.Role, error) {
	if s.once {
		return s.Endpoint.Enter(e)
	}
	s.once = true
	s.before()
	defer s.after()
	return s.Endpoint.Enter(e)
}

func nothing() {}

// pairOf returns the endpoints of two ranks, which do not see each other's memory, as
// processes do not, and what makes a communicator of one.
func pairOf(t *testing.T) (eps []transport.Endpoint, join func(context.Context, transport.Endpoint) (*ccl.Communicator, error)) {
	eps, err := shm.NewHeap(2, shm.SmallestGeometry(2))
	require.NoError(t, err)
	s := settings(t, 2, patient, nil)
	return eps, func(ctx context.Context, ep transport.Endpoint) (*ccl.Communicator, error) {
		c, err := ccl.New(ctx, ep, ccl.WithSelector(s))
		if c != nil {
			t.Cleanup(func() { c.Close() })
		}
		return c, err
	}
}

// A rank that fails or leaves the group as soon as it has joined does not take those with it
// that are still on their way out of New.
func TestNewIsOverForAll(t *testing.T) {
	for name, end := range map[string]func(c *ccl.Communicator){
		"abort": func(c *ccl.Communicator) { c.Abort(errors.New("over")) },
		"close": func(c *ccl.Communicator) { c.Close() },
		"both": func(c *ccl.Communicator) {
			c.Abort(errors.New("over"))
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			eps, join := pairOf(t)
			ended := make(chan struct{})
			errs := each(2, func(r int) error {
				if r == 0 {
					c, err := join(bg, eps[0])
					if err == nil {
						end(c)
					}
					close(ended)
					return err
				}
				_, err := join(bg, &stopped{eps[1], nothing, func() { <-ended }, false})
				return err
			})
			require.NoError(t, errors.Join(errs...))
		})
	}
}

// A rank that gives up in New fails it on all ranks or, if all have come, on none.
func TestNewFailsOnAllOrNone(t *testing.T) {
	for name, late := range map[string]bool{"the other has come": false, "the other is late": true} {
		t.Run(name, func(t *testing.T) {
			eps, join := pairOf(t)
			ctx, cancel := context.WithCancelCause(bg)
			waits, waited := make(chan struct{}), make(chan struct{})
			over, gaveUp := make(chan struct{}), make(chan struct{})
			errs := each(2, func(r int) (err error) {
				if r == 0 {
					first := &stopped{eps[0], func() { close(waits) }, func() {
						close(waited)
						if !late {
							<-over // the other comes before it has said that it gives up
						}
					}, false}
					_, err = join(ctx, first)
					close(gaveUp)
					return err
				}
				<-waits
				cancel(errors.New("no time"))
				<-waited
				if late {
					<-gaveUp
				}
				_, err = join(bg, eps[1])
				close(over)
				return err
			})
			if !late {
				require.NoError(t, errors.Join(errs...))
				return
			}
			require.ErrorContains(t, errs[0], "no time")
			require.ErrorContains(t, errs[1], "aborted by rank 0")
		})
	}
}
