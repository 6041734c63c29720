package ccl

import (
	"runtime/debug"

	"github.com/goccl/goccl/transport"
)

// panicOnFaults turns faults in memory that ranks share into panics, which do not kill the
// process, until restoreFaults.
func (c *Communicator) panicOnFaults() {
	if c.guard != nil {
		c.faults = debug.SetPanicOnFault(true)
	}
}

func (c *Communicator) restoreFaults() {
	if c.guard != nil {
		debug.SetPanicOnFault(c.faults)
	}
}

// fault returns the error for v, a recovered value, if its cause is memory that ranks share: the
// memory has vanished, or holds what no rank writes there. It is nil for other panics, such as
// those of kernels.
func (c *Communicator) fault(v any) error {
	if e, ok := v.(*ProtocolError); ok {
		return e
	}
	if c.guard != nil && v != nil {
		return c.guard.Vanished(v)
	}
	return nil
}

// caught runs f and returns an error if f panics because of shared memory.
func (c *Communicator) caught(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if err = c.fault(v); err == nil {
				panic(v)
			}
		}
	}()
	return f()
}

// failure returns the group's failure at the start of a call.
func (c *Communicator) failure() *transport.Failure {
	if c.guard != nil {
		err := c.caught(c.lives)
		if err == nil {
			return nil
		}
		c.ep.Fail(c.failureOf(err, c.rank)) // unless it has failed before
	}
	return c.ep.Failure()
}

// lives touches the memory that ranks share.
func (c *Communicator) lives() error {
	if c.ep.Failed() {
		return transport.ErrFailed
	}
	return nil
}
