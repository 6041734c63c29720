package ccl

import (
	"fmt"

	"github.com/goccl/goccl/ccl/internal/lifetime"
	"github.com/goccl/goccl/internal/interleave"
)

// unmade returns the error of a communicator that New has not made: nil or zero.
func (c *Communicator) unmade(operation string) error {
	switch {
	case c == nil:
		return fmt.Errorf("ccl: %s: %w: it is nil", operation, ErrInvalidCommunicator)
	case !c.engine.holds.life.State().Made():
		return unmadeError(operation)
	}
	return nil
}

// core returns the engine, nil if c is nil.
func (c *Communicator) core() *engine {
	if c == nil {
		return nil
	}
	return &c.engine
}

// Retain keeps the memory of c, which Alloc has given, until Release, also if c is closed
// meanwhile. It is for packages that use such memory in methods of their own, beside which the
// program may close c.
//
// It reports false, and keeps nothing, if c was closed before or New has not made it.
// Holds count: Retain may be called several times, each with a Release.
func (c *Communicator) Retain() bool {
	if c == nil || !c.engine.holds.life.HoldOpen() {
		return false
	}
	c.engine.holds.retained.Add(1)
	return true
}

// Release ends what a successful Retain has begun. The last use of a closed communicator frees its
// memory. Without such a Retain it does nothing.
func (c *Communicator) Release() {
	if c == nil {
		return
	}
	h := &c.engine.holds
	for n := h.retained.Load(); n > 0; n = h.retained.Load() {
		if h.retained.CompareAndSwap(n, n-1) {
			_ = h.drop() // Close has returned already
			return
		}
	}
}

// holds are the uses of a communicator's endpoint. The last one frees it.
type holds struct {
	*group
	life     lifetime.Lifetime
	retained interleave.Int64 // successful calls of Retain without their Release
	note     func()           // keeps the group's failure
	free     func() error
}

// unavailable returns why a call may not start. was is the word of the communicator's
// lifetime at the time of the call; the error depends on it.
func (h *holds) unavailable(coll Collective, was lifetime.State) error {
	switch {
	case !was.Made():
		return unmadeError(coll.String())
	case was.Closed():
		return h.closed(coll.String())
	}
	return fmt.Errorf("ccl: %v: %w: another call of this rank is running; give each goroutine a group of its own",
		coll, ErrConcurrentUse)
}

// holdFor holds the communicator until drop, or returns why the operation does not start.
func (h *holds) holdFor(operation string) error {
	switch {
	case !h.life.State().Made():
		return unmadeError(operation)
	case !h.life.HoldOpen():
		return h.closed(operation)
	}
	return nil
}

// drop releases a hold. If that was the last one, it returns the error of freeing the endpoint.
func (h *holds) drop() error {
	if h.life.Drop() {
		return nil
	}
	return h.release(lifetime.Hold)
}

// release takes a part out of the lifetime. The last use frees what the communicator has of the
// transport.
func (h *holds) release(part lifetime.State) error {
	if last := h.life.Release(part, h.note); !last {
		return nil
	}
	return h.free()
}

// unmadeError is the error of an operation of a zero communicator.
func unmadeError(operation string) error {
	return fmt.Errorf("ccl: %s: %w: New has not made it", operation, ErrInvalidCommunicator)
}
