// Package lifetime decides who frees a communicator's endpoint.
//
// # Model
//
// Each use of the endpoint is in the word of a [Lifetime] for as long as it lasts: a call as the
// bit Call, all others as a Hold. Those are Close, until the endpoint is closed and the messages'
// engine stopped; that engine, from the start until its release; and each method that any goroutine
// may call. Close sets the bit closing. The use that ends and leaves only closing in the word frees
// the endpoint. By then the endpoint is closed, none of its methods runs, and nothing changes the
// word any more, so this happens once.
//
// test/syncmodel/rules.txt has the rules. All methods may be called concurrently.
package lifetime

import "github.com/goccl/goccl/internal/interleave"

// Lifetime is the word of one communicator. That of a communicator that was not made is zero.
type Lifetime struct{ word interleave.Uint64 }

// State is the value of the word.
type State uint64

// The parts of the word.
const (
	Call    State = 1 << iota // a call runs
	closing                   // Close was called
	Hold                      // times the number of holds
)

// open is the word of a communicator that is not in use.
const open = Hold // of the messages' engine

// Made reports whether the communicator was made.
func (s State) Made() bool { return s != 0 }

// Closed reports whether Close was called.
func (s State) Closed() bool { return s&closing != 0 }

// Open makes the communicator.
func (l *Lifetime) Open() { l.word.Store(uint64(open)) }

// State returns the word.
func (l *Lifetime) State() State { return State(l.word.Load()) }

func (l *Lifetime) swap(was, is State) bool {
	return l.word.CompareAndSwap(uint64(was), uint64(is))
}

// Enter starts a call. If it reports false, was is the word that did not allow it. Rule
// noneInClosed.
func (l *Lifetime) Enter() (was State, ok bool) {
	for !l.swap(open, open|Call) {
		was = l.State()
		if was == 0 || was&(closing|Call) != 0 {
			return was, false
		}
		if l.swap(was, was|Call) {
			break
		}
	}
	return was, true
}

// Leave ends the call that runs if the endpoint is not used otherwise. If it reports false, the
// call must end with Release.
func (l *Lifetime) Leave() bool { return l.swap(open|Call, open) }

// Close starts a Close, which gets a hold. It reports false if it is not the first. Rules
// closeHolds and firstCloses.
func (l *Lifetime) Close() bool {
	for {
		was := l.State()
		if was == 0 || was.Closed() {
			return false
		}
		if l.swap(was, was+closing+Hold) {
			return true
		}
	}
}

// Hold takes a hold. It reports false if the endpoint is freed, or about to be. Rule noneAfterFree.
func (l *Lifetime) Hold() bool {
	for {
		was := l.State()
		if was == 0 || was == closing {
			return false
		}
		if l.swap(was, was+Hold) {
			return true
		}
	}
}

// HoldOpen takes a hold unless Close was called, or the communicator was not made.
func (l *Lifetime) HoldOpen() bool {
	for !l.swap(open, open+Hold) {
		was := l.State()
		if was == 0 || was.Closed() {
			return false
		}
		if l.swap(was, was+Hold) {
			break
		}
	}
	return true
}

// Drop ends a hold if the endpoint is not used otherwise. If it reports false, the hold must end
// with Release.
func (l *Lifetime) Drop() bool { return l.swap(open+Hold, open) }

// Release takes a part, Call or Hold, out of the word. It reports whether that was the last use of
// the endpoint, which the caller must then free. If Close was called, it calls note first, because
// afterwards the endpoint cannot be read. Rules lastFrees and noteFirst.
func (l *Lifetime) Release(part State, note func()) (last bool) {
	for {
		was := l.State()
		if was.Closed() {
			note()
		}
		if l.swap(was, was-part) {
			return was-part == closing
		}
	}
}
