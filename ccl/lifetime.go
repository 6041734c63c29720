package ccl

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/lifetime"
)

// unmade returns the error of a communicator that New has not made: nil or zero.
func (c *Communicator) unmade(operation string) error {
	switch {
	case c == nil:
		return fmt.Errorf("ccl: %s: %w: it is nil", operation, ErrInvalidCommunicator)
	case !c.life.State().Made():
		return fmt.Errorf("ccl: %s: %w: New has not made it", operation, ErrInvalidCommunicator)
	}
	return nil
}

// closed returns the error of an operation of a communicator that Close has closed.
func (c *Communicator) closed(operation string) error {
	return fmt.Errorf("ccl: %s: the communicator is %w", operation, ErrClosed)
}

// Retain keeps the memory of c, which Alloc has given, until Release, also if c is closed meanwhile. It is for packages
// that use such memory in methods of their own, beside which the program may close c.
//
// It reports false, and keeps nothing, if c was closed before or New has not made it.
// Holds count: Retain may be called several times, each with a Release.
func (c *Communicator) Retain() bool {
	if c == nil || !c.life.HoldOpen() {
		return false
	}
	c.retained.Add(1)
	return true
}

// Release ends what a successful Retain has begun. The last use of a closed communicator frees its memory.
// Without such a Retain it does nothing.
func (c *Communicator) Release() {
	if c == nil {
		return
	}
	for n := c.retained.Load(); n > 0; n = c.retained.Load() {
		if c.retained.CompareAndSwap(n, n-1) {
			_ = c.drop() // Close has returned already
			return
		}
	}
}

// holdFor holds the communicator until drop, or returns why the operation does not start.
func (c *Communicator) holdFor(operation string) error {
	if err := c.unmade(operation); err != nil {
		return err
	}
	if !c.life.HoldOpen() {
		return c.closed(operation)
	}
	return nil
}

// drop releases a hold. If that was the last one, it returns the error of freeing the endpoint.
func (c *Communicator) drop() error {
	if c.life.Drop() {
		return nil
	}
	return c.release(lifetime.Hold)
}

// release takes a part out of the lifetime. The last use frees what the communicator has of the
// transport.
func (c *Communicator) release(part lifetime.State) error {
	if last := c.life.Release(part, c.noteFailure); !last {
		return nil
	}
	c.logTotals()
	err := errors.Join(c.ep.Free(), c.levels.free(), c.closeLane())
	for _, r := range c.allocated {
		err = errors.Join(err, r.Free())
	}
	return err
}

// noteFailure keeps the group's failure for Err.
func (c *Communicator) noteFailure() {
	if f := c.ep.Failure(); f != nil && c.ended.Load() == nil {
		cause := c.cause(f)
		c.ended.CompareAndSwap(nil, &cause)
	}
}
