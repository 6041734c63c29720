package ccl_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// Calls that return more than an error, and messages, reject WithWork; they do not ignore it.
func TestWithWorkIsRejected(t *testing.T) {
	second := func(_ any, err error) error { return err }
	x := []int32{0}
	for name, call := range map[string]func(c *ccl.Communicator, opts ...ccl.CallOption) error{
		"Split": func(c *ccl.Communicator, opts ...ccl.CallOption) error { return second(c.Split(bg, 0, 0, opts...)) },
		"NewGroup": func(c *ccl.Communicator, opts ...ccl.CallOption) error {
			return second(c.NewGroup(bg, []int{0}, opts...))
		},
		"Form": func(c *ccl.Communicator, opts ...ccl.CallOption) error {
			return second(c.Form(bg, [][]int{{0}}, opts...))
		},
		"Send": func(c *ccl.Communicator, opts ...ccl.CallOption) error { return ccl.Send(bg, c, x, 0, 0, opts...) },
		"Recv": func(c *ccl.Communicator, opts ...ccl.CallOption) error {
			return second(ccl.Recv(bg, c, x, 0, 0, opts...))
		},
		"RecvBytes": func(c *ccl.Communicator, opts ...ccl.CallOption) error {
			_, _, err := ccl.RecvBytes(bg, c, 0, 0, 9, opts...)
			return err
		},
		"SendRecv": func(c *ccl.Communicator, opts ...ccl.CallOption) error {
			return second(ccl.SendRecv(bg, c, x, c.Rank(), []int32{0}, c.Rank(), 0, opts...))
		},
		"Isend": func(c *ccl.Communicator, opts ...ccl.CallOption) error {
			return ccl.Isend(bg, c, x, c.Rank(), 0, opts...).Wait(bg)
		},
		"Irecv": func(c *ccl.Communicator, opts ...ccl.CallOption) error {
			return ccl.Irecv(bg, c, x, c.Rank(), 0, opts...).Wait(bg)
		},
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, func(t *testing.T, connect connector) {
				g := group(t, connect, 2)
				for _, wrap := range []func(ccl.CallOption) ccl.CallOption{
					func(o ccl.CallOption) ccl.CallOption { return o },
					func(o ccl.CallOption) ccl.CallOption { return ccl.WithTorchNames(o) },
				} {
					for r, err := range each(2, func(r int) error {
						var w ccl.Work
						ctx, cancel := context.WithTimeout(bg, patient)
						defer cancel()
						err := call(g[r], ccl.WithTimeout(patient), wrap(ccl.WithWork(&w)))
						if waited := w.Wait(ctx); waited == nil {
							return errors.New("the Work has ended without an error")
						}
						return err
					}) {
						_, ok := errors.AsType[*ccl.InvalidArgumentError](err)
						require.True(t, ok, "rank %d: got %v", r, err)
						require.ErrorContains(t, err, "WithWork")
					}
				}
				allSum(t, g, 10)
			})
		})
	}
}

// The option has its effect also within WithTorchNames; of several Works the last one counts.
func TestWithWorkAmongOptions(t *testing.T) {
	g := group(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }, 2)
	var unused, w ccl.Work
	x := []int32{1}
	require.NoError(t, ccl.AllReduce(bg, g[0], x, x, ccl.Sum,
		ccl.WithWork(&unused), ccl.WithTorchNames(ccl.WithLabel("loss"), ccl.WithWork(&w)), ccl.WithWork(nil)))
	require.ErrorContains(t, unused.Wait(bg), "no call was started")
	require.NoError(t, ccl.AllReduce(bg, g[1], []int32{1}, []int32{0}, ccl.Sum))
	require.NoError(t, w.Wait(bg))
	require.Equal(t, int32(2), x[0])
}
