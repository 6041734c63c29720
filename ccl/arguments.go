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

// lists are arguments of a collective that are lists, nil if it has none. They stand apart because a
// small call would notice that they are cleared, and because they must not escape to the heap.
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
	return c.run(ctx, a, l, opts)
}

// run makes a collective from its start to its end.
func (c *Communicator) run(ctx context.Context, a *arguments, l *lists, opts []CallOption) error {
	err := c.start(ctx, a.coll, opts)
	if err != nil {
		return err
	}
	switch a.coll {
	case CollBarrier:
		err = c.step(ctx, c.ask(CollBarrier, 0, Buffer{}, Buffer{}, opts))
	case CollAllReduce:
		if l == nil {
			err = c.reduceForAll(ctx, a, opts)
		} else {
			err = c.allReduceCoalesced(ctx, a, l.tensors, opts)
		}
	case CollScan, CollExScan:
		err = c.reduceForAll(ctx, a, opts)
	case CollReduce:
		err = c.reduce(ctx, a, opts)
	case CollReduceScatter:
		err = c.reduceScatter(ctx, a, l, opts)
	case CollAllGather:
		err = c.allGather(ctx, a, l, opts)
	case CollBroadcast:
		err = c.broadcast(ctx, a, opts)
	case CollGather, CollScatter, collGatherLengths, collScatterLengths:
		err = c.gatherOrScatter(ctx, a, l, opts)
	case CollAllToAll:
		err = c.allToAll(ctx, a, opts)
	case collAllToAllLengths:
		err = c.allToAllV(ctx, a, l, opts)
	}
	return c.end(err)
}
