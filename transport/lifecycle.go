package transport

// Lifecycle is how a group fails and how a rank leaves it.
type Lifecycle interface {
	// Fail records f as the group's failure unless the group has failed before, wakes all
	// ranks, and returns the recorded failure.
	Fail(f *Failure) *Failure
	// Failed reports whether the group has failed. It costs one load.
	Failed() bool
	// Failure returns the recorded failure, nil if the group has not failed.
	Failure() *Failure

	// Conclude decides whether the group has formed. The first rank to call it decides for all;
	// every rank gets that decision. A rank that has seen all ranks arrive and agree calls it
	// with true, a rank that gives up before that calls it with false. It never waits.
	Conclude(formed bool) (isFormed bool)

	// Withdraw leaves the call entered last, also if Enter failed, after an error that Fail has
	// recorded. It returns when no other rank can touch this rank's memory any more and, after an
	// error of Complete, when every other rank has completed or left the call. If a kernel does
	// not return, it returns when the call's timeout has passed once more.
	//
	// ended reports that the call was complete after all: another rank has run it, or all ranks
	// have announced its completion. The call then succeeds on all ranks.
	Withdraw() (ended bool)

	// Close leaves the group. It never waits. A peer that still needs this rank gets
	// *PeerLostError. After it Enter and waits return ErrClosed. A rank that is closed inside a
	// call keeps its peers until it withdraws. Closing twice is a no-op.
	Close() error
	// Free releases the memory of the endpoint. Preconditions: the endpoint is closed; none of
	// its methods is running. After it only Rank, Size, Name and Close may be called.
	Free() error
}
