package ccl

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// lifetime says who may free a communicator's endpoint.
//
// Whoever uses the endpoint is in the word for as long as it does: a call by the bit
// inCall, all others by a hold. Those are Close, until the endpoint is closed and the
// messages' engine stopped; that engine, from New until its Release; and each Abort, Err
// and connect. Close sets the bit closing. Whoever goes away and leaves closing alone in
// the word frees the endpoint. By then the endpoint is closed and none of its methods runs;
// and nothing changes the word any more, so that this happens once and nobody comes after.
//
// A communicator that New has not made has a word of zero. The rules are those of
// docs/inside/model.md.
type lifetime struct{ word atomic.Uint64 }

const (
	inCall  = 1 << iota // a call runs
	closing             // Close was called
	oneHold             // and multiples of it: how many holds there are
)

// open is the word of a communicator that nobody uses.
const open = oneHold // of the messages' engine

// enter is the beginning of a call. Where it is refused, was is the word that says why.
// Rule noneInClosed.
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

// close is the beginning of Close, which gets a hold; false: it is not the first. Rules
// closeHolds and firstCloses.
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

// hold takes a hold, unless the endpoint is free, or about to be. Rule noneAfterFree.
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

// unmade is the error of a communicator that New has not made: nil or zero.
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

// drop gives a hold back. Its error is that of freeing the endpoint.
func (c *Communicator) drop() error { return c.goAway(oneHold) }

// goAway takes inCall or a hold out of the word, and frees the endpoint if nobody else
// uses it. What Err returns afterwards is noted before: here it can still be read. Rules
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

// free gives back what the communicator has of the transport.
func (c *Communicator) free() error {
	err := c.ep.Free()
	for _, r := range c.allocated {
		err = errors.Join(err, r.Free())
	}
	return err
}
