package ccl

import (
	"context"
	"fmt"
)

// Request is an asynchronous call that is started many times with the same buffers, and that allocates
// nothing when it is started again: a persistent request of MPI (MPI 4.0, section 6.12).
type Request struct {
	comm *Communicator
	args arguments
	work Work
}

// AllReduceInit prepares an AllReduce that Start makes. It does not communicate. Start reports what is
// wrong with the arguments. See AllReduceAsync.
func AllReduceInit[T Element](c *Communicator, send, recv []T, op Op, opts ...CallOption) *Request {
	r := &Request{comm: c, args: arguments{dtype: DTypeOf[T](), coll: CollAllReduce, op: op, send: bufferOf(send), recv: bufferOf(recv)}}
	r.args.opts[0] = mergeCallOptions(opts)
	r.work.end.L = &r.work.mu
	r.work.comm, r.work.ended = c, true
	return r
}

// Start starts the call, as an Async function does, and returns its Work: the same at every start. The
// call before must have ended, and no goroutine may still wait for it; if it has not ended, Start
// returns another Work, which fails with *InvalidArgumentError, and starts nothing. A Request belongs to
// one goroutine at a time. Drain returns the error of a start that the program has not asked its Work
// for.
func (r *Request) Start(ctx context.Context) *Work {
	w := &r.work
	w.mu.Lock()
	running := !w.ended
	if !running {
		w.ctx, w.args, w.ended, w.failed, w.err, w.done = ctx, r.args, false, nil, nil, nil
	}
	w.mu.Unlock()
	if running {
		wrong := &InvalidArgumentError{r.args.coll.String(), fmt.Sprintf("rank %d starts a request that still runs: wait for its Work first", r.comm.rank)}
		failed := &Work{ended: true, err: outsideCall(r.args.coll, r.args.opts[:], wrong)}
		failed.end.L = &failed.mu
		r.comm.noteFailed(failed, failed.err)
		return failed
	}
	if err := r.comm.unmade(r.args.coll.String()); err != nil {
		w.finish(outsideCall(r.args.coll, r.args.opts[:], err))
		return w
	}
	w.args.opts[0] = r.comm.asynchronous(r.args.opts[0])
	w.args.seal(r.comm)
	r.comm.queue.append(w)
	return w
}
