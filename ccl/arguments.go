package ccl

import "context"

// arguments are what a program passes to a collective.
type arguments struct {
	coll       Collective
	dtype      DType
	op         Op
	root       int
	send, recv Buffer
}

// lists are arguments of a collective that are lists, nil if it has none. They stand apart because
// a small call would notice that they are cleared, and because they must not escape to the heap.
type lists struct {
	counts, displs         []int // of the buffer with blocks; of send, if both have blocks
	recvCounts, recvDispls []int
	tensors                []Buffer // of AllReduceCoalesced, otherwise nil
}

// makeCall makes a collective of the program, or starts it if an option is WithWork.
func (c *Communicator) makeCall(ctx context.Context, a *arguments, l *lists, opts []CallOption) error {
	if w := workOf(opts); w != nil {
		return c.startWork(ctx, w, a, l, mergeCallOptions(opts))
	}
	if c == nil || c.queue.length.Load() > 0 {
		if err := c.awaitTurn(ctx, a.coll, opts); err != nil {
			return err
		}
	}
	return c.engine.run(ctx, a, l, opts)
}

// start starts a call that the caller ends by engine.end. It rejects WithWork.
func (c *Communicator) start(ctx context.Context, coll Collective, opts []CallOption) error {
	if err := c.awaitTurn(ctx, coll, opts); err != nil {
		return err
	}
	if err := c.engine.start(ctx, coll, opts); err != nil {
		return err
	}
	if workOf(opts) != nil {
		return c.engine.end(c.engine.rejectCall(&arguments{coll: coll}, opts, notAsynchronous(coll.String())))
	}
	return nil
}

// awaitTurn waits, before a synchronous call, for the asynchronous ones.
func (c *Communicator) awaitTurn(ctx context.Context, coll Collective, opts []CallOption) error {
	if c == nil {
		return outsideCall(coll, opts, c.unmade(coll.String()))
	}
	if c.queue.length.Load() == 0 {
		return nil
	}
	if err := c.queue.await(ctx, coll, opts); err != nil {
		return outsideCall(coll, opts, err)
	}
	return nil
}

// run makes a collective from its start to its end.
func (e *engine) run(ctx context.Context, a *arguments, l *lists, opts []CallOption) error {
	err := e.start(ctx, a.coll, opts)
	if err != nil {
		return err
	}
	if e.isDebug {
		if err := checkBools(a.coll.String(), a.dtype, e.inputOf(a)); err != nil {
			return e.end(e.rejectCall(a, opts, err))
		}
	}

	switch a.coll {
	case CollBarrier:
		err = e.step(ctx, e.ask(CollBarrier, 0, Buffer{}, Buffer{}, opts))
	case CollAllReduce:
		if l == nil {
			err = e.reduceForAll(ctx, a, opts)
		} else {
			err = e.allReduceCoalesced(ctx, a, l.tensors, opts)
		}

	case CollScan, CollExScan:
		err = e.reduceForAll(ctx, a, opts)
	case CollReduce:
		err = e.reduce(ctx, a, opts)
	case CollReduceScatter:
		err = e.reduceScatter(ctx, a, l, opts)

	case CollAllGather:
		err = e.allGather(ctx, a, l, opts)
	case CollBroadcast:
		err = e.broadcast(ctx, a, opts)
	case CollGather, CollScatter, collGatherLengths, collScatterLengths:
		err = e.gatherOrScatter(ctx, a, l, opts)
	case CollAllToAll:
		err = e.allToAll(ctx, a, opts)
	case collAllToAllLengths:
		err = e.allToAllV(ctx, a, l, opts)
	}
	return e.end(err)
}
