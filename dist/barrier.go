package dist

import "time"

// Barrier returns when all ranks of the group have called it. It fails with
// *CollectiveFailedError, in which errors.As finds *TimeoutError with every rank that has
// not called it, *PeerLostError, *AbortedError, *MismatchError if ranks make another call,
// or the error of the context. Without a group the error is ErrNotInitialized or
// ErrUnbound.
func Barrier(opts ...CallOption) error {
	c := prepare(opts)
	return c.result(c.comm.Barrier(c.ctx, c.opts[:]...))
}

// MonitoredBarrier is Barrier(WithCallTimeout(timeout)), with torch's arguments.
func MonitoredBarrier(timeout time.Duration, opts ...CallOption) error {
	o := merge(opts)
	if timeout != 0 {
		o.timeout = timeout
	}
	return Barrier(o)
}
