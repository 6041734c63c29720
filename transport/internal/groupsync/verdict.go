package groupsync

import (
	"fmt"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// verdict is a rank's part in what the group agrees on: its failure, and whether it was formed.
// Its exported methods are those of transport.Endpoint. Any goroutine may call its methods.
type verdict struct {
	group  *Group
	rank   int
	stored interleave.Pointer[transport.Failure] // the failure that this rank has stored
	mu     interleave.Mutex                      // of Fail, where processes share memory
}

// Fail implements transport.Endpoint. (syncmodel: firstCause)
//
// The first of several goroutines of the rank stores its failure. Between goroutines none waits for
// another one: it may be of a rank that is stopped while it fails the group for this one.
func (v *verdict) Fail(f *transport.Failure) *transport.Failure {
	if v.group.remote != nil {
		if !v.Failed() {
			v.store(f)
			v.group.remote.ProposeFailure(v.rank)
		}
		return v.Failure()
	}

	if v.group.processes != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
	}
	if !v.Failed() {
		v.store(f)
		if v.group.words.fail.CompareAndSwap(0, uint64(v.rank)+1) {
			v.group.announce()
		}
	}
	return v.Failure()
}

// FailHere records f in this process alone, unless the group has failed: the other ranks cannot
// be reached, or learn of it in another way.
func (v *verdict) FailHere(f *transport.Failure) {
	v.store(f)
	v.group.SetFailed(v.rank, v.rank)
}

// store stores the rank's failure: the first one. When it returns others find one, whichever
// goroutine of the rank was first.
func (v *verdict) store(f *transport.Failure) {
	v.stored.CompareAndSwap(nil, f)
	v.group.causes.Store(v.rank, v.stored.Load())
}

func (v *verdict) Failed() bool { return v.group.words.fail.Load() != 0 }

func (v *verdict) Failure() *transport.Failure {
	by := v.group.FailedBy()
	switch by {
	case -1:
		return nil
	case v.rank:
		if f := v.stored.Load(); f != nil {
			return f // with its error value, which other processes cannot get
		}
	}
	if by < 0 || by >= len(v.group.states) || by == v.rank {
		return v.unreadable(by)
	}
	return v.group.causes.Load(by)
}

// unreadable returns the failure of a group whose fail word holds a value that no rank writes.
func (v *verdict) unreadable(by int) *transport.Failure {
	err := &transport.ProtocolError{Peer: -1, Text: fmt.Sprintf(
		"the group's memory was overwritten: its word for failures names rank %d of %d, which has not failed", by, len(v.group.states))}
	return &transport.Failure{Kind: transport.FailureAborted, By: v.rank, Text: err.Error(), Cause: err}
}

func (v *verdict) Conclude(isFormed bool) bool {
	if v.group.remote != nil {
		v.group.remote.ProposeVerdict(isFormed)
	} else {
		v.group.SetVerdict(isFormed)
	}
	return v.group.words.verdict.Load() == formed
}
