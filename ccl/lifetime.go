package ccl

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// lifetime decides who frees a communicator's endpoint.
//
// Each use of the endpoint is in the word for as long as it lasts: a call as the bit inCall, all
// others as a hold. Those are Close, until the endpoint is closed and the messages' engine stopped;
// that engine, from New until its Release; and each Abort, Err and connect. Close sets the bit
// closing. The use that ends and leaves only closing in the word frees the endpoint. By then the
// endpoint is closed, none of its methods runs, and nothing changes the word any more, so this
// happens once.
//
// The word of a communicator that New has not made is zero. docs/inside/model.md has the rules.
type lifetime struct{ word atomic.Uint64 }

const (
	inCall  = 1 << iota // a call runs
	closing             // Close was called
	oneHold             // times the number of holds
)

// open is the word of a communicator that is not in use.
const open = oneHold // of the messages' engine

// enter starts a call. If it reports false, was is the word that did not allow it. Rule
// noneInClosed.
func (l *lifetime) enter() (was uint64, ok bool) {
	for !l.word.CompareAndSwap(open, open|inCall) {
		was = l.word.Load()
		if was == 0 || was&(closing|inCall) != 0 {
			return was, false
		}
		if l.word.CompareAndSwap(was, was|inCall) {
			break
		}
	}
	return was, true
}

// close starts a Close, which gets a hold. It reports false if it is not the first. Rules closeHolds
// and firstCloses.
func (l *lifetime) close() bool {
	for {
		was := l.word.Load()
		if was == 0 || was&closing != 0 {
			return false
		}
		if l.word.CompareAndSwap(was, was+closing+oneHold) {
			return true
		}
	}
}

// hold takes a hold. It reports false if the endpoint is freed, or about to be. Rule noneAfterFree.
func (l *lifetime) hold() bool {
	for {
		was := l.word.Load()
		if was == 0 || was == closing {
			return false
		}
		if l.word.CompareAndSwap(was, was+oneHold) {
			return true
		}
	}
}

// isClosed reports whether Close was called.
func (l *lifetime) isClosed() bool { return l.word.Load()&closing != 0 }

// unmade returns the error of a communicator that New has not made: nil or zero.
func (c *Communicator) unmade(operation string) error {
	switch {
	case c == nil:
		return fmt.Errorf("ccl: %s: %w: it is nil", operation, ErrInvalidCommunicator)
	case c.life.word.Load() == 0:
		return fmt.Errorf("ccl: %s: %w: New has not made it", operation, ErrInvalidCommunicator)
	}
	return nil
}

// leave ends the call that runs.
func (c *Communicator) leave() {
	if !c.life.word.CompareAndSwap(open|inCall, open) {
		_ = c.goAway(inCall) // Close has returned already
	}
}

// drop releases a hold. If that was the last one, it returns the error of freeing the endpoint.
func (c *Communicator) drop() error { return c.goAway(oneHold) }

// goAway takes inCall or a hold out of the word and frees the endpoint if that was its last use.
// Before that it notes the failure for Err, because afterwards the endpoint cannot be read. Rules
// lastFrees and noteFirst.
func (c *Communicator) goAway(part uint64) error {
	for {
		was := c.life.word.Load()
		if was&closing != 0 {
			c.noteFailure()
		}
		if c.life.word.CompareAndSwap(was, was-part) {
			if was-part == closing {
				return c.free()
			}
			return nil
		}
	}
}

func (c *Communicator) noteFailure() {
	if f := c.ep.Failure(); f != nil && c.ended.Load() == nil {
		cause := c.cause(f)
		c.ended.CompareAndSwap(nil, &cause)
	}
}

// free releases what the communicator has of the transport.
func (c *Communicator) free() error {
	err := c.ep.Free()
	for _, r := range c.allocated {
		err = errors.Join(err, r.Free())
	}
	return err
}
