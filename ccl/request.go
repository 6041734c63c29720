package ccl

import "context"

// Request is an asynchronous call that is started many times with the same buffers, and that
// allocates nothing when it is started again: a persistent request of MPI (MPI 4.0, section 6.12).
type Request struct {
	comm *Communicator
	args arguments
	opts CallOption
	work Work
}

// AllReduceInit prepares an AllReduce that Start makes. It does not communicate. Start reports what
// is wrong with the arguments. See WithWork.
func AllReduceInit[T Element](c *Communicator, send, recv []T, op Op, opts ...CallOption) *Request {
	return &Request{comm: c, opts: mergeCallOptions(opts), args: arguments{
		coll: CollAllReduce, dtype: DTypeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv),
	}}
}

// Start starts the call, as WithWork does, and returns its Work: the same at every start. The call
// before must have ended, and no goroutine may still wait for it; if it has not ended, Start
// returns another Work, which fails with *InvalidArgumentError, and starts nothing. A Request
// belongs to one goroutine at a time. Drain returns the error of a start that the program has not
// asked its Work for.
func (r *Request) Start(ctx context.Context) *Work {
	if !r.work.begin(r.comm.core(), ctx, &r.args, nil) {
		failed := &Work{ended: true, err: stillRuns(r.comm, &r.args, r.opts, "a request that still runs: wait for its Work first")}
		failed.end.L = &failed.mu
		r.comm.unasked.noteFailed(failed, failed.err)
		return failed
	}
	_ = r.comm.append(&r.work, r.opts) // the Work has the error as well
	return &r.work
}
