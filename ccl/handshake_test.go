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

// firstEnter is an endpoint that calls before and after around its first Enter, where they may
// block. New makes that Enter.
type firstEnter struct {
	transport.Endpoint
	before, after func()
	entered       bool
}

func (f *firstEnter) Enter(e *transport.Arrival) (transport.Role, error) {
	if f.entered {
		return f.Endpoint.Enter(e)
	}
	f.entered = true
	f.before()
	defer f.after()
	return f.Endpoint.Enter(e)
}

func nothing() {}

// pairOf returns the endpoints of two ranks on an arena, so that like processes they do not see
// each other's memory, and a function that makes a communicator of one endpoint.
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

// New succeeds on a rank even if another rank, whose New has already returned, fails or leaves
// the group before this one returns.
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
				_, err := join(bg, &firstEnter{eps[1], nothing, func() { <-ended }, false})
				return err
			})
			require.NoError(t, errors.Join(errs...))
		})
	}
}

// If a rank gives up in New, New fails on all ranks; but if all ranks have already entered it,
// New succeeds on all.
func TestNewFailsOnAllOrNone(t *testing.T) {
	for name, late := range map[string]bool{"the other enters in time": false, "the other is late": true} {
		t.Run(name, func(t *testing.T) {
			eps, join := pairOf(t)
			ctx, cancel := context.WithCancelCause(bg)
			entering, waited := make(chan struct{}), make(chan struct{})
			joined, gaveUp := make(chan struct{}), make(chan struct{})
			errs := each(2, func(r int) (err error) {
				if r == 0 {
					first := &firstEnter{eps[0], func() { close(entering) }, func() {
						close(waited)
						if !late {
							<-joined // the other enters before this rank announces that it gives up
						}
					}, false}
					_, err = join(ctx, first)
					close(gaveUp)
					return err
				}
				<-entering
				cancel(errors.New("no time"))
				<-waited
				if late {
					<-gaveUp
				}
				_, err = join(bg, eps[1])
				close(joined)
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
