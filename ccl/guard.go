package ccl

import (
	"runtime/debug"

	"github.com/goccl/goccl/transport"
)

// guarded makes faults in memory that ranks share panics, which kill no process, for as
// long as a call runs.
func (c *Communicator) guarded() {
	if c.guard != nil {
		c.faults = debug.SetPanicOnFault(true)
	}
}

func (c *Communicator) unguarded() {
	if c.guard != nil {
		debug.SetPanicOnFault(c.faults)
	}
}

// fault returns the error that stands for v, which was recovered, if it comes of the
// memory that ranks share: that has vanished, or holds what no rank writes there. It is nil
// for all other panics, such as those of kernels.
func (c *Communicator) fault(v any) error {
	if e, ok := v.(*ProtocolError); ok {
		return e
	}
	if c.guard != nil {
		return c.guard.Vanished(v)
	}
	return nil
}

// caught runs f, where there is a guard, and returns an error if f panics because of shared
// memory.
func (c *Communicator) caught(f func(*Communicator) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if err = c.fault(v); err == nil {
				panic(v)
			}
		}
	}()
	return f(c)
}

// failure returns the group's failure at the beginning of a call, where there is a guard.
func (c *Communicator) failure() *transport.Failure {
	if err := c.caught((*Communicator).lives); err != nil {
		c.ep.Fail(c.failureOf(err, c.rank)) // unless it has failed before
		return c.ep.Failure()
	}
	return nil
}

func (c *Communicator) lives() error {
	if c.ep.Failed() {
		return transport.ErrFailed
	}
	return nil
}
