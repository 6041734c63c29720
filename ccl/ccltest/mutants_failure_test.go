package ccltest

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// failureMutants go wrong when something else does. stop is closed when they may end
// what they have left running.
func failureMutants(stop <-chan struct{}) []mutant {
	return []mutant{
		{"never returns after a failure", "Leave", ccl.CollAllReduce, after(func(_ *ccl.Call, err error) error {
			if err != nil {
				<-stop
			}
			return err
		}), hangs},
		{"hides what kind of error a verb returned", "Leave", ccl.CollAllReduce, after(func(_ *ccl.Call, err error) error {
			if err != nil {
				return fmt.Errorf("ring: %v", err)
			}
			return nil
		}), nil},
		{"changes the root's buffer while it sends", "Leave", ccl.CollBroadcast, scrambling(), nil},
	}
}

// scrambling is a broadcast of something else, which all ranks turn into the result
// when they are through with it.
func scrambling() *ccl.Kernel {
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		invert := func() {
			for i, x := range c.Out().Bytes() {
				c.Out().Bytes()[i] = ^x
			}
		}
		if c.Rank() == c.Root() {
			invert()
		}
		if err := chain(none)(c); err != nil {
			return err
		}
		invert()
		return nil
	}
	return k
}

// deafEndpoint does not notice that a context has ended.
type deafEndpoint struct{ transport.Endpoint }

func (d deafEndpoint) Enter(e *transport.Arrival) (transport.Role, error) {
	e.Ctx = context.Background()
	return d.Endpoint.Enter(e)
}
