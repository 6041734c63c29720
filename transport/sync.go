package transport

import (
	"context"
	"time"
)

// InlineBytes is the length in bytes of the longest payload that a line holds itself.
const InlineBytes = 48

// ReasonBytes is how many bytes of the reason for a rejected call reach the other ranks.
const ReasonBytes = 240

// Sync is how the ranks of a group enter a call together and complete it.
type Sync interface {
	// SetTimeout bounds each call that follows.
	SetTimeout(t Timeout)

	// PayloadLimit is the length in bytes of the longest payload that Enter carries: 0 if it
	// carries none, otherwise at least InlineBytes.
	PayloadLimit() int

	// Enter publishes e as this rank's line of call e.Seq and waits for the lines of all other
	// ranks. e.Seq is one more than the number of the last call that this rank entered or
	// rejected. When Enter returns, e and what it points to belong to the caller again, except
	// Send and Recv.
	//
	// Enter returns the errors of a wait; *MismatchError where the hashes differ; and
	// *OverlapError where the transport has Memory and one rank writes what another reads or
	// writes. Every rank gets the latter two, unless it finds the group failed first.
	//
	// Before memory is touched a failure takes precedence over the arrival of all ranks: in an
	// Exposed call, unless it is Eager and shows payloads. Otherwise the arrival takes precedence,
	// so that a call that has succeeded on one rank succeeds on all.
	//
	// The role is RunOwn, unless e.AnyRunner is set. RunClaimed: the caller runs the bodies that
	// Claim hands out, its own or bodies of ranks that sleep, and then calls Release instead of
	// Complete. RunNone: other ranks have run the call.
	Enter(e *Arrival) (Role, error)
	// Claim hands out the next rank whose body the caller runs.
	Claim() (rank int, ok bool)
	// Release ends a series of claims and returns when all bodies have been run, with the
	// errors of a wait. failed reports that the body claimed last failed; the caller has
	// recorded that with Fail.
	Release(failed bool) error
	// Complete announces that this rank no longer touches the memory of other ranks in the call
	// entered last, and waits for the same announcement of all others.
	Complete() error

	// Payload returns the first n bytes of the payload that a rank brought to the call entered
	// last. It is valid until this rank enters or rejects its next call.
	Payload(rank, n int) []byte
	// Fingerprint returns the fingerprint that a rank brought to the call entered last.
	Fingerprint(rank int) Fingerprint

	// Reject consumes call seq without entering it. It never waits. Ranks that enter that call
	// get *RejectedError and record it as the group's failure; this rank's next Enter then
	// returns ErrFailed. The error has the first ReasonBytes bytes of why. A rank keeps two
	// reasons: of the first call that it rejected since its last Enter, and of the latest.
	Reject(seq uint64, why string)
}

// Arrival is what one rank brings to a call: the contents of its line.
type Arrival struct {
	Ctx         context.Context // ends this rank's waits in the call
	Limit       Timeout         // unless zero, replaces the timeout of SetTimeout for this call
	Seq         uint64          // number of the call
	Hash        uint64          // of Fingerprint; compared in every call
	Fingerprint Fingerprint     // all ranks must agree on it
	// Payload, at most PayloadLimit bytes, is shown to all ranks.
	Payload []byte
	// Send and Recv are this rank's buffers, shown through Memory if the call is Exposed.
	Send, Recv []byte
	// Displs, shown through Memory to a rank that runs this rank's body, are the positions of
	// blocks in Recv. A transport does not interpret them.
	Displs []int
	// Reads and Writes are the memory of the user that the call reads and writes for this rank
	// once all ranks have entered. Ranks that share an address space compare them. Reads is
	// ignored if there is a Payload of at most InlineBytes.
	Reads, Writes Span
	// Exposed: the call touches the memory of other ranks, through a view or by messages, and
	// ends with Complete.
	Exposed bool
	// Eager: the call is Exposed, and its ranks bring payloads as well, the same on all ranks. If
	// the call has Memory it shows no payloads; otherwise it shows them, and no rank touches the
	// memory of another. Only for transports with Regions.
	Eager bool
	// AnyRunner: any rank may run the body of any rank.
	AnyRunner bool
	// Staged: Enter is a Flip of Staging, on all ranks or on none, and shows what was put
	// before. It is ignored where the call has Memory.
	Staged bool
	// Work is the number of bytes that the bodies of all ranks touch. The transport derives
	// from it how many ranks run them.
	Work int
	// NoSpin: this rank's waits in the call sleep at once instead of polling or yielding first.
	// Ranks may differ in it.
	NoSpin bool
}

// Fingerprint is what all ranks of a call must agree on, in the engine's encoding.
type Fingerprint [5]uint64

// Span is memory of this process, the addresses from Lo to before Hi. The zero Span is empty.
type Span struct{ Lo, Hi uint64 }

// Overlaps reports whether s and t share memory.
func (s Span) Overlaps(t Span) bool { return s.Lo < t.Hi && t.Lo < s.Hi }

// Role is what a rank does once all ranks have entered a call.
type Role uint8

const (
	// RunOwn: the rank runs its own body.
	RunOwn Role = iota
	// RunClaimed: the rank runs the bodies that Claim hands out, and then calls Release.
	RunClaimed
	// RunNone: another rank has run this rank's body.
	RunNone
)

// Timeout bounds the waits of a call.
type Timeout struct {
	// After ends a call that has waited that long. 0: it may wait for ever; negative: as well, and
	// Warn is called.
	After time.Duration
	// Warn, unless nil, is called by the waiting rank after half of that time, at most once a call,
	// with the number of the call and the ranks that have not entered it. If After is negative, it
	// is called again each time that as long has passed.
	Warn func(seq uint64, missing []int)
}
