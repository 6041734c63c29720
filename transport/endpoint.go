package transport

// Endpoint is one rank's end of a transport. The package comment describes in which order and by
// which goroutines its methods are called.
type Endpoint interface {
	// Rank and Size are constant; 0 <= Rank < Size.
	Rank() int
	Size() int
	// Name is the transport's name in ccl.yaml, such as "local".
	Name() string

	Sync
	Messages
	Lifecycle

	// Memory shows the buffers of other ranks in place, and Staging shows copies of them.
	// Exactly one of the two is not nil. It is the same one for all calls, unless the endpoint
	// implements Regions: then it is the one for the call entered last.
	Memory() Memory
	Staging() Staging

	// P2P returns the endpoint's channel for messages outside of calls, always the same one.
	P2P() P2P
}

// FaultGuard is implemented by endpoints of ranks that share memory with other processes. That
// memory can vanish, for example when another program truncates the file, and it can be
// overwritten.
//
// Where it has vanished, a method of the endpoint panics with a fault, or returns as if nothing
// had happened. Where it was overwritten, a method returns a *ProtocolError or panics with one.
// Callers therefore set debug.SetPanicOnFault and recover. The following need neither: Close,
// Conclude, Fail, Failure, Fingerprint, Reject, Withdraw, Group, P2P.Wake and P2P.TryWithdraw.
type FaultGuard interface {
	// Vanished returns the error for v, a recovered value, if v is a fault in memory of the
	// endpoint; otherwise nil.
	Vanished(v any) error
}
