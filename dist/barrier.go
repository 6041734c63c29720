package dist

import "time"

// Barrier returns when all ranks of the group have called it.
//
// It fails with *CollectiveFailedError, in which errors.As and errors.Is find the cause:
//
//   - *TimeoutError, with every rank that has not called it
//   - *PeerLostError or *AbortedError
//   - *MismatchError if ranks make another call
//   - the error of the context
//
// Without a group the error is ErrNotInitialized, in a
// goroutine without a rank ErrUnbound.
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
