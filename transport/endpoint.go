package transport

import "context"

// InlineBytes is the payload that travels in a line itself.
const InlineBytes = 48

// ReasonBytes is how much of a reason for which a rank refuses a call reaches the others.
const ReasonBytes = 240

// Endpoint is one rank's end of a transport. The package comment says how its
// methods are used together and by whom.
type Endpoint interface {
	// Rank and Size are constant; 0 <= Rank < Size.
	Rank() int
	Size() int
	// Name is the transport's name in ccl.yaml, such as "local".
	Name() string

	// SetTimeout bounds each call that follows.
	SetTimeout(t Timeout)

	// PayloadLimit is the length in bytes up to which Enter carries payloads;
	// it is 0 where none travel, and otherwise at least InlineBytes.
	PayloadLimit() int

	// Enter publishes e as this rank's line of call e.Seq and waits for the
	// lines of all other ranks. Seq is one more than that of the last call
	// entered or refused. The errors are those of a wait, *MismatchError where
	// the hashes differ, and *OverlapError where Memory is there and what one
	// rank writes overlaps what another reads or writes; these two on every rank
	// that does not find the group failed by then. For an Exposed call a failure beats having reached everybody. e and
	// what it points to are the caller's again when Enter returns, but for Send
	// and Recv.
	//
	// For a call with e.AnyRunner the answer may be RunClaimed: the caller runs the
	// bodies that Claim hands out, its own or those of ranks that sleep, and then
	// calls Release, which takes the place of Complete; or RunNone: the call has been
	// run by other ranks.
	Enter(e *Arrival) (Role, error)
	// Claim hands out the next rank whose body the caller has to run.
	Claim() (rank int, ok bool)
	// Release ends a series of claims; failed says that the body claimed last
	// failed, which the caller has recorded with Fail before. It returns when all
	// bodies have been run, with the errors of a wait.
	Release(failed bool) error
	// Complete says that this rank no longer touches the memory of the others
	// in the call entered last, and waits until they say the same.
	Complete() error
	// Payload returns the first n bytes of the payload that rank brought to the
	// call entered last. It stays valid until this rank enters or refuses its next
	// call.
	Payload(rank, n int) []byte
	// Fingerprint returns the fingerprint that rank brought to the call entered last.
	Fingerprint(rank int) Fingerprint

	// Refuse consumes call seq without entering it; it never waits. If other ranks
	// enter that call they get *RefusedError, and record it; this rank's next
	// Enter then returns ErrFailed. The error has the first ReasonBytes bytes of why,
	// which a rank keeps for two calls: the first that it refused since its last
	// Enter, and the latest.
	Refuse(seq uint64, why string)
	// Fail records f as the group's failure unless there is one already, wakes
	// everybody, and returns the recorded one.
	Fail(f *Failure) *Failure
	// Conclude decides whether the group has come about: the first rank to call it decides
	// for all, and all get that answer. Whoever sees that all ranks have come and agree
	// calls it with true; whoever gives up before calls it with false. It never waits.
	Conclude(formed bool) (isFormed bool)
	// Failed reports whether the group has failed; it costs one load.
	Failed() bool
	// Failure returns the recorded failure, nil if there is none.
	Failure() *Failure
	// Withdraw leaves the call entered last, also if Enter failed, after an error
	// that Fail has recorded: it returns when no other rank can touch this rank's
	// memory any more, or, for a kernel that does
	// not return, when the call's timeout has passed once more. ended reports that
	// the call turned out to be complete after all, run by another rank.
	Withdraw() (ended bool)
	// Close leaves the group. It never waits; a peer that still needs this rank
	// gets *PeerLostError. Closing twice is a no-op. Enter and waits return
	// ErrClosed from then on; a rank that is closed inside a call lets its peers go
	// when it withdraws.
	Close() error
	// Free gives back the memory that the endpoint holds, once it is closed and none
	// of its methods runs: from then on only Rank, Size, Name and Close may be called.
	Free() error

	// Messages. Every ordered pair of ranks has its own stream, in order, and a
	// rank may send to itself only what it receives in the same breath: never.
	//
	// Put makes the next bytes of message m to rank `to` available and returns
	// how many it took: all of m.Bytes, or a multiple of 16 above zero, so that no
	// element is torn. Where the memory of
	// the sender itself is shown, it must not change before Drain.
	Put(to int, m *Message) (n int, err error)
	// Drain waits until `to` has taken all that was put.
	Drain(to int) error
	// Next waits for the next bytes of rank from's stream. The view is valid
	// until Take, which gives it back to the sender.
	Next(from int) (view Message, err error)
	Take(from int)

	// Memory shows the buffers of other ranks in place; nil where the ranks do
	// not share memory. Staging shows copies of them piece by piece; nil where
	// Memory is there. Exactly one of them is not nil, which may differ from call to
	// call where ranks have Regions: it is that of the call entered last.
	Memory() Memory
	Staging() Staging

	// P2P returns the endpoint's channel for messages beside calls, always the same.
	P2P() P2P
}

// FaultGuard is what an endpoint implements that ranks share with other processes. Its memory can
// vanish under it, like that of a file that somebody truncates: where a process would die of
// touching it, its methods panic, or return as if nothing was. And it can hold what no rank
// has written there: then its methods return a *ProtocolError or panic with one. Whoever
// makes calls of it does so under debug.SetPanicOnFault, and recovers. Close, Conclude, Fail, Failure, Print, Refuse and Withdraw need
// neither, nor do Group, and Wake and Withdraw of its lane.
type FaultGuard interface {
	// Vanished returns the error that stands for v, which was recovered, if that is a
	// fault in memory of the endpoint, and else nil.
	Vanished(v any) error
}

// Arrival is what one rank brings to a call: the contents of its line.
type Arrival struct {
	Ctx         context.Context // ends this rank's waits in the call
	Limit       Timeout         // unless zero, takes the place of SetTimeout's for this call
	Seq         uint64          // number of the call
	Hash        uint64          // of Print; compared in every call
	Fingerprint Fingerprint     // what all ranks must agree on
	// Payload, at most PayloadLimit bytes, is shown to all ranks.
	Payload []byte
	// Send and Recv are this rank's buffers, shown through Memory when Exposed.
	Send, Recv []byte
	// Displs, shown through Memory to a rank that runs this rank's body, are where blocks
	// begin in Recv. A transport does not look at them.
	Displs []int
	// Reads and Writes are the user's memory that the call reads and writes for this
	// rank once all have entered; where ranks share an address space they are compared.
	// Reads is ignored beside a Payload.
	Reads, Writes Span
	// Exposed: the call touches other ranks' memory, through windows or
	// messages, and ends with Complete.
	Exposed bool
	// AnyRunner: any rank's body may be run by any rank.
	AnyRunner bool
	// Staged: Enter is a turn of Staging, on all ranks or none, and shows what was
	// staged before. Where there is Memory it is ignored.
	Staged bool
	// Work is the number of bytes that the bodies of all ranks touch, by which
	// the transport decides how many ranks should run them.
	Work int
	// NoSpin: waits of this rank in the call sleep at once, where others poll or yield
	// first: no core should be spent on them. Ranks may differ in it.
	NoSpin bool
}

// Span is memory of this process by its addresses, from Lo to before Hi. An empty one is
// the zero Span.
type Span struct{ Lo, Hi uint64 }

// Overlaps reports whether s and t share memory.
func (s Span) Overlaps(t Span) bool { return s.Lo < t.Hi && t.Lo < s.Hi }

// Fingerprint is a call's fingerprint: what it means is the engine's business.
type Fingerprint [5]uint64

// Role says what a rank does once all have entered a call.
type Role uint8

const (
	// RunOwn: run your own body.
	RunOwn Role = iota
	// RunClaimed: run the bodies that Claim hands out, then Release.
	RunClaimed
	// RunNone: your body has been run.
	RunNone
)

// Message is bytes on their way between two ranks, with what travels beside
// them. Total is the length of the whole message, of which Bytes is the next
// part; Seq is the call it belongs to; Clock is the sender's count of dependent
// steps, for measuring an algorithm's critical path.
type Message struct {
	Bytes []byte
	Total int
	Seq   uint64
	Clock uint32
}

// Memory shows other ranks' buffers in place.
type Memory interface {
	// Buffers returns the Send and Recv that rank brought to the call entered
	// last, which was Exposed. Touch them only between Enter and Complete.
	Buffers(rank int) (send, recv []byte)
	// Displs returns the Displs that rank brought to the call entered last, to a rank that
	// runs that rank's body: Claim has handed it out.
	Displs(rank int) []int
}

// Staging shows copies of other ranks' memory, turn by turn: what a rank stages and
// shares before a turn all see after it, until they come to the next. All ranks make
// the same turns.
type Staging interface {
	// PieceBytes is the length of the longest piece, a multiple of 16.
	PieceBytes() int
	// PutInput copies a piece of this rank's input, which may be empty, for the next turn.
	// Bytes lo to hi of it may be left out: nobody will look at them.
	PutInput(piece []byte, lo, hi int)
	// PutResult copies a result for the next turn: the bytes of some piece from lo on. Who
	// shares nothing need not call it.
	PutResult(lo int, result []byte)
	// Flip waits until all ranks have come to it. The first after an Enter that was a
	// turn is that one, and returns at once.
	Flip() error
	// Input returns the first n bytes that rank staged before the last turn.
	Input(rank, n int) []byte
	// Result returns what rank shared before the last turn: bytes lo to hi.
	Result(rank int) (lo, hi int, result []byte)
}
