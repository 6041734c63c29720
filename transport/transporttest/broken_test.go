package transporttest

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
)

// broken is a transport with one defect.
type broken struct {
	check string // that catches it
	what  string // is wrong
	says  string // part of the check's error
	hangs bool   // the check's error is that a group makes no progress
	races bool   // the race detector catches it by itself
	kind  naiveKind
	wrap  func(ep *naive) transport.Endpoint
}

var (
	parks  = naiveKind{parks: true}
	copies = naiveKind{copies: true}
)

var brokenTransports = []broken{
	{check: "Identity", what: "carries short payloads only", says: "PayloadLimit is 20",
		wrap: func(ep *naive) transport.Endpoint { return shortPayloads{ep} }},
	{check: "Conclude", what: "every rank decides for itself", says: "concluded",
		wrap: func(ep *naive) transport.Endpoint { return headstrong{ep} }},
	{check: "Groups", what: "fails all groups at once", says: "has reached the other",
		wrap: oneFailureForAll()},

	{check: "Sync", what: "Enter does not wait", says: "returned while rank", races: true,
		wrap: func(ep *naive) transport.Endpoint { return unawaitedEnter{ep} }},
	{check: "Payload/Sizes", what: "payload of the call before", says: "Payload(",
		wrap: func(ep *naive) transport.Endpoint { return stalePayload{ep} }},
	{check: "Payload/Sizes", what: "payload is the caller's memory", says: "Payload(", races: true,
		wrap: func(ep *naive) transport.Endpoint { return aliasedPayload{ep} }},
	{check: "Payload/Sizes", what: "one slot per rank", says: "Payload(",
		wrap: slottedPayloads(1)},
	{check: "Payload/Mixed", what: "exposed calls carry no payload", says: "panic",
		wrap: func(ep *naive) transport.Endpoint { return noExposedPayload{ep} }},
	{check: "Fingerprint", what: "returns the own fingerprint for all ranks", says: "Fingerprint(",
		wrap: func(ep *naive) transport.Endpoint { return ownFingerprints{ep} }},
	{check: "Mismatch", what: "rank 0 does not notice", says: "no error instead of *MismatchError",
		wrap: func(ep *naive) transport.Endpoint { return unnoticedMismatch{ep} }},
	{check: "Overlap", what: "rank 0 looks at its own memory only", says: "no error instead of *OverlapError",
		wrap: func(ep *naive) transport.Endpoint { return unnoticedOverlap{ep} }},
	{check: "Overlap", what: "treats reads as writes", says: "brought the same memory",
		wrap: func(ep *naive) transport.Endpoint { return writesReads{ep} }},
	{check: "Overlap", what: "ignores what calls with a payload read", says: "no error instead of *OverlapError",
		wrap: func(ep *naive) transport.Endpoint { return uncomparedReads{ep} }},

	{check: "Records", what: "each rank has its own memory", says: "bytes that rank",
		wrap: func(ep *naive) transport.Endpoint { return ownRecords{ep} }},
	{check: "Records", what: "the memory is gone when a rank has left", says: "no longer sees",
		wrap: lostRecords()},

	{check: "AnyRunner", what: "Claim returns rank 0 twice", says: "2 times instead of 1", kind: parks,
		wrap: func(ep *naive) transport.Endpoint { return &twiceClaimed{naive: ep} }},
	{check: "AnyRunner", what: "rank 0's body is never run", says: "0 times instead of 1",
		wrap: func(ep *naive) transport.Endpoint { return idleRank{ep} }},
	{check: "AnyRunner", what: "shows the neighbour's displacements", says: "displacements [", kind: parks,
		wrap: func(ep *naive) transport.Endpoint { return neighbourDispls{ep} }},
	{check: "AnyRunner/Failing", what: "a failed body counts as run", says: "no error instead of", kind: parks,
		wrap: func(ep *naive) transport.Endpoint { return failedIsRun{ep} }},

	{check: "View", what: "returns the neighbour's buffers", says: "seen by rank",
		wrap: func(ep *naive) transport.Endpoint { return neighbourBuffers{ep} }},
	{check: "View", what: "Complete does not wait", says: "block", races: true,
		wrap: func(ep *naive) transport.Endpoint { return noCompletion{ep} }},
	{check: "View/Uneven", what: "cuts buffers to the length of the own one", says: "bytes of",
		wrap: func(ep *naive) transport.Endpoint { return cutBuffers{ep} }},
	{check: "Staging", what: "PutResult publishes all of the result", says: "Result(", kind: copies,
		wrap: func(ep *naive) transport.Endpoint { return wholeResult{ep} }},
	{check: "Staging", what: "results that are stored to an Input are lost", says: "Result(", kind: copies,
		wrap: func(ep *naive) transport.Endpoint { return lostResult{ep} }},
	{check: "Staging", what: "Flip does not wait", says: "differs at byte", kind: copies,
		wrap: func(ep *naive) transport.Endpoint { return unawaitedFlip{ep} }},
	{check: "Staging", what: "a result is published again by the next flip", says: "Result(", kind: copies,
		wrap: func(ep *naive) transport.Endpoint { return lastingResult{ep} }},
	{check: "Staging/Parts", what: "sends each rank the part of the next one", says: "of Input(", kind: copies,
		wrap: func(ep *naive) transport.Endpoint { return nextPart{ep} }},

	{check: "Staging/Resolved", what: "ResolveFlip does not wait for ranks that may yet arrive", says: "the call has succeeded on ranks", kind: copies,
		wrap: func(ep *naive) transport.Endpoint { return hastyResolve{ep} }},
	{check: "Staging/Resolved", what: "ResolveFlip always returns true", says: "the call has succeeded on ranks", kind: copies,
		wrap: func(ep *naive) transport.Endpoint { return alwaysResolved{ep} }},

	{check: "Messages/Order", what: "loses the clock", says: "Clock 0", kind: copies,
		wrap: func(ep *naive) transport.Endpoint { return clockless{ep} }},
	{check: "Messages/Order", what: "puts empty messages nowhere", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return dropsEmpty{ep} }},
	{check: "Messages/AllPairs", what: "Put waits until all is taken", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return rendezvousPut{ep} }},
	{check: "Messages/Held", what: "one buffer for the views of all ranks", says: "message from rank",
		wrap: func(ep *naive) transport.Endpoint { return &oneView{naive: ep} }},
	{check: "Messages/Drain", what: "Drain does not wait", says: "before message", races: true,
		wrap: func(ep *naive) transport.Endpoint { return noDrain{ep} }},

	{check: "Reject/All", what: "two slots, and no rank waits for refusals", says: "Payload(",
		wrap: slottedPayloads(2)},
	{check: "Reject/Alone", what: "no rank notices refusals", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return silentRefusal{ep} }},
	{check: "Reject/Runs", what: "only the first refusal of a run is noticed", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return firstRefusalOnly{ep} }},
	{check: "Reject/Alone", what: "loses the reasons", says: "the reason of rank",
		wrap: func(ep *naive) transport.Endpoint { return reasonlessRefusal{ep} }},
	{check: "Reject/On", what: "one reason for all calls", says: "the reason of rank",
		wrap: func(ep *naive) transport.Endpoint { return newestReason{ep} }},

	{check: "Fail/First", what: "the last failure wins", says: "the failure that",
		wrap: func(ep *naive) transport.Endpoint { return lastFailure{ep} }},
	{check: "Fail/First", what: "loses the text", says: "the failure that",
		wrap: func(ep *naive) transport.Endpoint { return textlessFailure{ep} }},
	{check: "Fail/Afterwards", what: "Withdraw always returns true", says: "Withdraw returned true",
		wrap: func(ep *naive) transport.Endpoint { return alwaysEnded{ep} }},
	{check: "Interrupt/Failure", what: "Fail wakes no rank", says: "failure meets", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return silentFailure{ep} }},
	{check: "Interrupt/Cancel", what: "Complete ignores the context", says: "cancelled context meets Complete", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return deafComplete{ep} }},
	{check: "Interrupt/Deadline", what: "Enter ignores the context", says: "deadline meets", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return deafEnter{ep} }},
	{check: "Interrupt/Departure", what: "no rank notices Close", says: "departure meets", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return silentClose{ep} }},
	{check: "Interrupt/Refusal", what: "no rank notices refusals", says: "refusal meets", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return silentRefusal{ep} }},
	{check: "Interrupt/OwnClose", what: "Close waits for the end of the call", says: "closing of the own endpoint meets", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return &waitingClose{naive: ep} }},
	{check: "Interrupt/Timeout", what: "names ranks behind as missing", says: "timeout meets Complete",
		wrap: func(ep *naive) transport.Endpoint { return behindIsMissing{ep} }},
	{check: "Interrupt/Departure", what: "waits for one rank after the other", says: "while rank 1 is missing", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return oneByOne{ep} }},

	{check: "Reached", what: "a cancelled context wins over all having entered", says: "cancelled context meets Enter, which has been reached",
		wrap: func(ep *naive) transport.Endpoint { return cancelFirst{ep} }},
	{check: "Reached", what: "an exposed Enter ignores an earlier failure", says: "failure meets Enter (Exposed), which has been reached",
		wrap: func(ep *naive) transport.Endpoint { return noEntryCheck{ep} }},
	{check: "Reached", what: "a failure wins over payloads", says: "failure meets Enter (Eager), which has been reached", kind: copies,
		wrap: func(ep *naive) transport.Endpoint { return failureFirstEager{ep} }},
	{check: "Reached", what: "a failure wins over a message", says: "failure meets Next, which has been reached",
		wrap: func(ep *naive) transport.Endpoint { return failureFirst{ep} }},
	{check: "Reached/Leaving", what: "a departure wins over all having entered", says: "has left the group",
		wrap: func(ep *naive) transport.Endpoint { return departureFirst{ep} }},

	{check: "Withdraw/Inside", what: "Withdraw does not wait", says: "while another rank was inside", races: true,
		wrap: func(ep *naive) transport.Endpoint { return hastyWithdraw{ep} }},
	{check: "Withdraw/Early", what: "an exposed Enter ignores an earlier failure", says: "runs the body",
		wrap: func(ep *naive) transport.Endpoint { return noEntryCheck{ep} }},
	{check: "Withdraw/Completed", what: "Withdraw does not wait for ranks that may complete the call", says: "the call has succeeded on ranks",
		wrap: func(ep *naive) transport.Endpoint { return hastyWithdraw{ep} }},
	{check: "Withdraw/Completed", what: "Withdraw always returns true", says: "the call has succeeded on ranks",
		wrap: func(ep *naive) transport.Endpoint { return alwaysEnded{ep} }},
	{check: "Withdraw/Stuck", what: "Withdraw waits for ever", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return endlessWithdraw{ep} }},

	{check: "Context", what: "a cancelled context fails the group", says: "the group has failed",
		wrap: func(ep *naive) transport.Endpoint { return cancelFails{ep} }},
	{check: "Timeout/Missing", what: "names all ranks", says: "but ranks",
		wrap: func(ep *naive) transport.Endpoint { return allMissing{ep} }},
	{check: "Timeout/Missing", what: "never warns", says: "Warn was called 0 times",
		wrap: func(ep *naive) transport.Endpoint { return noWarning{ep} }},
	{check: "Timeout/Limit", what: "ignores Limit", says: "timed out",
		wrap: func(ep *naive) transport.Endpoint { return noLimit{ep} }},
	{check: "Timeout/Warn", what: "one timeout for all calls", says: "after only",
		wrap: func(ep *naive) transport.Endpoint { return &oneTimeout{naive: ep} }},
	{check: "Timeout/Endless", what: "takes a negative timeout for none", hangs: true,
		wrap: func(ep *naive) transport.Endpoint { return noNegativeLimit{ep} }},
	{check: "Timeout/Endless", what: "a negative timeout ends the call", says: "timed out",
		wrap: func(ep *naive) transport.Endpoint { return positiveLimit{ep} }},

	{check: "Close", what: "Withdraw always returns true", says: "which this rank has not entered",
		wrap: func(ep *naive) transport.Endpoint { return alwaysEnded{ep} }},
	{check: "Close", what: "closing again is an error", says: "closed",
		wrap: func(ep *naive) transport.Endpoint { return &closeOnce{naive: ep} }},
	{check: "Leaks", what: "leaves a goroutine behind", says: "goroutines instead of",
		wrap: func(ep *naive) transport.Endpoint { return leakyGoroutine{ep} }},
	{check: "Leaks", what: "leaves a timer behind", says: "garbage: false",
		wrap: func(ep *naive) transport.Endpoint { return leakyTimer{ep} }},
	{check: "Leaks", what: "leaves the callback of a context behind", says: "garbage: false",
		wrap: func(ep *naive) transport.Endpoint { return leakyContext{ep} }},
	{check: "Random", what: "every rank reads a failure of its own", says: "the failure is",
		wrap: func(ep *naive) transport.Endpoint { return ownFailure{ep} }},
}

type shortPayloads struct{ *naive }

func (shortPayloads) PayloadLimit() int { return 20 }

type headstrong struct{ *naive }

func (headstrong) Conclude(formed bool) bool { return formed }

type sharedFailure struct {
	*naive
	failed *atomic.Bool
}

func oneFailureForAll() func(*naive) transport.Endpoint {
	failed := new(atomic.Bool)
	return func(ep *naive) transport.Endpoint { return sharedFailure{ep, failed} }
}

func (ep sharedFailure) Failed() bool { return ep.failed.Load() }

func (ep sharedFailure) Fail(f *transport.Failure) *transport.Failure {
	ep.failed.Store(true)
	return ep.naive.Fail(f)
}

type unawaitedEnter struct{ *naive }

func (ep unawaitedEnter) Enter(e *transport.Arrival) (transport.Role, error) {
	ep.locked(func() { ep.publish(e) })
	return transport.RunOwn, nil
}

type stalePayload struct{ *naive }

func (ep stalePayload) Payload(rank, n int) (p []byte) {
	ep.locked(func() {
		c := ep.calls[ep.arrival.Seq-1]
		if c == nil || len(c.entered[rank].Payload) < n {
			c = ep.now
		}
		p = c.entered[rank].Payload[:n]
	})
	return p
}

type aliasedPayload struct{ *naive }

func (ep aliasedPayload) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	ep.locked(func() { ep.now.entered[ep.rank].Payload = e.Payload })
	return role, err
}

// slotted copies payloads to slots that are used again for later calls.
type slotted struct {
	*naive
	slots *sync.Map // [rank, seq%parities]
	use   uint64
}

func slottedPayloads(parities uint64) func(*naive) transport.Endpoint {
	var groups sync.Map // by group, since one broken transport opens many
	return func(ep *naive) transport.Endpoint {
		slots, _ := groups.LoadOrStore(ep.naiveGroup, new(sync.Map))
		return slotted{ep, slots.(*sync.Map), parities}
	}
}

func (ep slotted) Enter(e *transport.Arrival) (transport.Role, error) {
	ep.slots.Store([2]uint64{uint64(ep.rank), e.Seq % ep.use}, slices.Clone(e.Payload))
	return ep.naive.Enter(e)
}

func (ep slotted) Payload(rank, n int) []byte {
	p, _ := ep.slots.Load([2]uint64{uint64(rank), ep.arrival.Seq % ep.use})
	return p.([]byte)[:min(n, len(p.([]byte)))]
}

type noExposedPayload struct{ *naive }

func (ep noExposedPayload) Enter(e *transport.Arrival) (transport.Role, error) {
	if e.Exposed {
		e.Payload = nil
	}
	return ep.naive.Enter(e)
}

type ownFingerprints struct{ *naive }

func (ep ownFingerprints) Fingerprint(int) transport.Fingerprint {
	return ep.naive.Fingerprint(ep.rank)
}

type unnoticedMismatch struct{ *naive }

func (ep unnoticedMismatch) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	if ep.rank == 0 && errors.As(err, new(*transport.MismatchError)) {
		err = nil
	}
	return role, err
}

type unnoticedOverlap struct{ *naive }

func (ep unnoticedOverlap) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	if overlap, ok := errors.AsType[*transport.OverlapError](err); ok && ep.rank == 0 && !slices.Contains(overlap.Ranks, 0) {
		err = nil
	}
	return role, err
}

type writesReads struct{ *naive }

func (ep writesReads) Enter(e *transport.Arrival) (transport.Role, error) {
	wrong := *e
	if wrong.Writes.Hi == 0 {
		wrong.Writes = wrong.Reads
	}
	return ep.naive.Enter(&wrong)
}

type uncomparedReads struct{ *naive }

func (ep uncomparedReads) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	if len(e.Payload) > 0 && errors.As(err, new(*transport.OverlapError)) {
		err = nil
	}
	return role, err
}

type twiceClaimed struct {
	*naive
	again bool
}

func (ep *twiceClaimed) Claim() (int, bool) {
	if ep.again {
		ep.again = false
		return 0, true
	}
	rank, ok := ep.naive.Claim()
	ep.again = ok && rank == 0
	return rank, ok
}

type idleRank struct{ *naive }

func (ep idleRank) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	if ep.rank == 0 && e.AnyRunner && err == nil {
		return transport.RunNone, ep.Complete()
	}
	return role, err
}

type failedIsRun struct{ *naive }

func (ep failedIsRun) Release(failed bool) error {
	if failed {
		ep.locked(func() { ep.claims = ep.n - ep.now.run })
	}
	return ep.naive.Release(false)
}

type neighbourBuffers struct{ *naive }

func (ep neighbourBuffers) Memory() transport.Memory { return ep }

func (ep neighbourBuffers) Buffers(rank int) (send, recv []byte) {
	return ep.naive.Buffers((rank + 1) % ep.n)
}

type neighbourDispls struct{ *naive }

func (ep neighbourDispls) Memory() transport.Memory { return ep }

func (ep neighbourDispls) Displs(rank int) []int { return ep.naive.Displs((rank + 1) % ep.n) }

type noCompletion struct{ *naive }

func (ep noCompletion) Complete() error {
	ep.locked(func() { ep.now.done[ep.rank] = true })
	return nil
}

type cutBuffers struct{ *naive }

func (ep cutBuffers) Memory() transport.Memory { return ep }

func (ep cutBuffers) Buffers(rank int) (send, recv []byte) {
	own, _ := ep.naive.Buffers(ep.rank)
	send, recv = ep.naive.Buffers(rank)
	return send[:min(len(own), len(send))], recv
}

type wholeResult struct{ *naive }

func (ep wholeResult) Staging() transport.Staging { return ep }
func (ep wholeResult) PutResult(int, int)         { ep.naive.PutResult(0, ep.PieceBytes()) }

type unawaitedFlip struct{ *naive }

func (ep unawaitedFlip) Staging() transport.Staging { return ep }

func (ep unawaitedFlip) Flip() error {
	ep.locked(func() { ep.flip() })
	return nil
}

type lastingResult struct{ *naive }

func (ep lastingResult) Staging() transport.Staging { return ep }

func (ep lastingResult) PutResult(lo, hi int) {
	ep.naive.PutResult(lo, hi)
	ep.lasting = true
}

type lostResult struct{ *naive }

func (ep lostResult) Staging() transport.Staging { return ep }
func (ep lostResult) Input(rank, n int) []byte   { return bytes.Clone(ep.naive.Input(rank, n)) }

// hastyResolve does not wait, and alwaysResolved waits and does not test.
type (
	hastyResolve   struct{ *naive }
	alwaysResolved struct{ *naive }
)

func (ep hastyResolve) Staging() transport.Staging   { return ep }
func (ep alwaysResolved) Staging() transport.Staging { return ep }

func (ep hastyResolve) ResolveFlip() (isComplete bool) { return false }

func (ep alwaysResolved) ResolveFlip() (isComplete bool) {
	ep.naive.ResolveFlip()
	return true
}

type nextPart struct{ *naive }

func (ep nextPart) Staging() transport.Staging { return ep }

var _ transport.Parts = nextPart{}

func (ep nextPart) PutParts(piece []byte, _ bool, part func(rank int) (lo, hi int)) {
	sent := make([]byte, len(piece))
	for rank := range ep.n {
		lo, hi := part((rank + 1) % ep.n)
		if rank == ep.rank {
			hi = lo // what other ranks read
		}
		copy(sent[lo:hi], piece[lo:hi])
	}
	ep.PutInput(sent, 0, 0)
}

type clockless struct{ *naive }

func (ep clockless) Put(to int, m *transport.Message) (int, error) {
	lost := *m
	lost.Clock = 0
	return ep.naive.Put(to, &lost)
}

type dropsEmpty struct{ *naive }

func (ep dropsEmpty) Put(to int, m *transport.Message) (int, error) {
	if len(m.Bytes) == 0 {
		return 0, nil
	}
	return ep.naive.Put(to, m)
}

type rendezvousPut struct{ *naive }

func (ep rendezvousPut) Put(to int, m *transport.Message) (int, error) {
	n, err := ep.naive.Put(to, m)
	if err != nil {
		return n, err
	}
	return n, ep.Drain(to)
}

type oneView struct {
	*naive
	view []byte
}

func (ep *oneView) Next(from int) (transport.Message, error) {
	m, err := ep.naive.Next(from)
	ep.view = append(ep.view[:0], m.Bytes...)
	m.Bytes = ep.view
	return m, err
}

type noDrain struct{ *naive }

func (noDrain) Drain(int) error { return nil }

type silentRefusal struct{ *naive }

func (silentRefusal) Reject(uint64, string) {}

type reasonlessRefusal struct{ *naive }

func (ep reasonlessRefusal) Reject(seq uint64, _ string) { ep.naive.Reject(seq, "") }

// newestReason keeps only the reason of each rank's latest refusal.
type newestReason struct{ *naive }

func (ep newestReason) Reject(seq uint64, why string) {
	ep.naive.Reject(seq, why)
	ep.locked(func() {
		for _, c := range ep.calls {
			c.why[ep.rank] = ep.call(seq).why[ep.rank]
		}
	})
}

type firstRefusalOnly struct{ *naive }

func (ep firstRefusalOnly) Reject(seq uint64, _ string) {
	ep.locked(func() { ep.call(seq).refused[ep.rank] = !ep.call(seq - 1).refused[ep.rank] })
}

type lastFailure struct{ *naive }

func (ep lastFailure) Fail(f *transport.Failure) *transport.Failure {
	ep.locked(func() { ep.failure = f })
	return f
}

type textlessFailure struct{ *naive }

func (ep textlessFailure) Failure() *transport.Failure {
	f := ep.naive.Failure()
	if f == nil {
		return nil
	}
	lost := *f
	lost.Text = ""
	return &lost
}

type alwaysEnded struct{ *naive }

func (ep alwaysEnded) Withdraw() bool {
	ep.naive.Withdraw()
	return true
}

type silentFailure struct{ *naive }

func (ep silentFailure) Fail(f *transport.Failure) *transport.Failure {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.failure == nil {
		ep.failure = f
	}
	return ep.failure
}

type deafComplete struct{ *naive }

func (ep deafComplete) Complete() error {
	ep.arrival.Ctx = context.Background()
	return ep.naive.Complete()
}

type deafEnter struct{ *naive }

func (ep deafEnter) Enter(e *transport.Arrival) (transport.Role, error) {
	e.Ctx = context.WithoutCancel(e.Ctx)
	return ep.naive.Enter(e)
}

type silentClose struct{ *naive }

func (silentClose) Close() error { return nil }

type waitingClose struct {
	*naive
	inCall sync.Mutex
}

func (ep *waitingClose) Enter(e *transport.Arrival) (transport.Role, error) {
	ep.inCall.Lock()
	defer ep.inCall.Unlock()
	return ep.naive.Enter(e)
}

func (ep *waitingClose) Close() error {
	ep.inCall.Lock()
	defer ep.inCall.Unlock()
	return ep.naive.Close()
}

type behindIsMissing struct{ *naive }

func (ep behindIsMissing) Complete() error {
	err := ep.naive.Complete()
	if t, ok := errors.AsType[*transport.TimeoutError](err); ok {
		t.Missing, t.Behind = t.Behind, nil
	}
	return err
}

type oneByOne struct{ *naive }

func (ep oneByOne) Enter(e *transport.Arrival) (role transport.Role, err error) {
	ep.locked(func() {
		ep.publish(e)
		for q := range ep.n {
			if err == nil {
				err = ep.await(func(other int) bool { return other != q || ep.now.entered[q] != nil })
			}
		}
	})
	return transport.RunOwn, err
}

type cancelFirst struct{ *naive }

func (ep cancelFirst) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	if err == nil {
		err = e.Ctx.Err()
	}
	return role, err
}

type noEntryCheck struct{ *naive }

func (ep noEntryCheck) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	if errors.Is(err, transport.ErrFailed) && e.Exposed {
		ep.locked(func() {
			if !slices.Contains(ep.now.entered, nil) {
				err = nil
			}
		})
	}
	return role, err
}

// failureFirstEager treats an Eager call like every other that is Exposed.
type failureFirstEager struct{ *naive }

func (failureFirstEager) Region(int) (transport.Region, error) { return nil, errors.ErrUnsupported }

type failureFirst struct{ *naive }

func (ep failureFirst) Next(from int) (transport.Message, error) {
	if ep.Failed() {
		return transport.Message{}, transport.ErrFailed
	}
	return ep.naive.Next(from)
}

type departureFirst struct{ *naive }

func (ep departureFirst) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	runtime.Gosched()
	ep.locked(func() {
		for q, closed := range ep.closed {
			if closed && q != ep.rank {
				err = &transport.PeerLostError{Rank: q}
			}
		}
	})
	return role, err
}

type hastyWithdraw struct{ *naive }

func (hastyWithdraw) Withdraw() bool { return false }

type endlessWithdraw struct{ *naive }

func (ep endlessWithdraw) Withdraw() bool {
	ep.limit = transport.Timeout{}
	return ep.naive.Withdraw()
}

type cancelFails struct{ *naive }

func (ep cancelFails) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	if errors.Is(err, e.Ctx.Err()) && err != nil {
		ep.Fail(failureOf(ep.rank, e.Seq, err))
	}
	return role, err
}

type allMissing struct{ *naive }

func (ep allMissing) Enter(e *transport.Arrival) (transport.Role, error) {
	role, err := ep.naive.Enter(e)
	if t, ok := errors.AsType[*transport.TimeoutError](err); ok {
		t.Missing = nil
		for q := range ep.n {
			if q != ep.rank {
				t.Missing = append(t.Missing, q)
			}
		}
	}
	return role, err
}

type noWarning struct{ *naive }

func (ep noWarning) SetTimeout(t transport.Timeout) {
	t.Warn = nil
	ep.naive.SetTimeout(t)
}

type noLimit struct{ *naive }

func (ep noLimit) Enter(e *transport.Arrival) (transport.Role, error) {
	e.Limit = transport.Timeout{}
	return ep.naive.Enter(e)
}

type noNegativeLimit struct{ *naive }

func (ep noNegativeLimit) Enter(e *transport.Arrival) (transport.Role, error) {
	e.Limit.After = max(e.Limit.After, 0)
	return ep.naive.Enter(e)
}

type positiveLimit struct{ *naive }

func (ep positiveLimit) Enter(e *transport.Arrival) (transport.Role, error) {
	e.Limit.After = e.Limit.After.Abs()
	return ep.naive.Enter(e)
}

type oneTimeout struct {
	*naive
	begin time.Time
}

func (ep *oneTimeout) Enter(e *transport.Arrival) (transport.Role, error) {
	if ep.begin.IsZero() {
		ep.begin = time.Now()
	}
	if ep.timeout.After > 0 {
		e.Limit = ep.timeout
		e.Limit.After = max(time.Until(ep.begin.Add(ep.timeout.After)), 1)
	}
	return ep.naive.Enter(e)
}

type closeOnce struct {
	*naive
	closed atomic.Bool
}

func (ep *closeOnce) Close() error {
	if ep.closed.Swap(true) {
		return transport.ErrClosed
	}
	return ep.naive.Close()
}

type leakyGoroutine struct{ *naive }

func (ep leakyGoroutine) Enter(e *transport.Arrival) (transport.Role, error) {
	go func() { <-e.Ctx.Done() }()
	return ep.naive.Enter(e)
}

type leakyTimer struct{ *naive }

func (ep leakyTimer) Enter(e *transport.Arrival) (transport.Role, error) {
	time.AfterFunc(time.Hour, func() { runtime.KeepAlive(ep) })
	return ep.naive.Enter(e)
}

type leakyContext struct{ *naive }

func (ep leakyContext) Enter(e *transport.Arrival) (transport.Role, error) {
	context.AfterFunc(e.Ctx, func() { runtime.KeepAlive(ep) })
	return ep.naive.Enter(e)
}

type ownFailure struct{ *naive }

func (ep ownFailure) Failure() *transport.Failure {
	f := ep.naive.Failure()
	if f == nil {
		return nil
	}
	own := *f
	own.By, own.Ranks, own.Text = ep.rank, []int{ep.rank}, "own"
	return &own
}
