package dist

import "time"

// Barrier returns when all ranks of the group have called it. After the timeout its
// *TimeoutError names every rank that has not.
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
