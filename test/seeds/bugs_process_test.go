package seeds

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

const endOfWorker = "receive that nothing matches, at the end of the worker"

// Works that are not started, not waited for, or started twice.
var requestBugs = []bug{
	{
		name: "receive that nothing matches, not waited for", origin: "iP2P", kind: is[*dist.UnfinishedError](), ranks: []int{1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Barrier()
			}
			_, err := dist.Irecv(floats(4), 0, 0) // wrong
			return err
		},
		right: func(rank int) error {
			if rank == 0 {
				if err := dist.Send(floats(4), 1, 0); err != nil {
					return err
				}
			} else if err := await(dist.Irecv(floats(4), 0, 0)); err != nil {
				return err
			}
			return dist.Barrier()
		},
	},
	{
		name: "receive from a rank that leaves, not waited for", origin: "iP2P", kind: is[*dist.UnfinishedError](), ranks: []int{1}, call: "recv", isSometimes: true,
		wrong: func(rank int) error {
			if rank == 1 {
				_, err := dist.Irecv(floats(4), 0, 0) // wrong
				return err
			}
			return nil
		},
		right: func(rank int) error {
			if rank == 1 {
				return await(dist.Irecv(floats(4), 0, 0))
			}
			return dist.Send(floats(4), 1, 0)
		},
	},
	{
		name: endOfWorker, origin: "iP2P", kind: unmatched, call: "recv", isBare: true, // names rank 1 if rank 0 is there, and otherwise rank 0
		wrong: func(rank int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil || rank == 0 {
				return err
			}
			_, err := dist.Irecv(floats(4), 0, 0) // wrong
			return err
		},
		right: func(rank int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			return await(dist.Irecv(floats(4), 0, 0))
		},
	},
	{
		name: "long send not waited for", origin: "iP2P", kind: is[*dist.UnfinishedError](), ranks: []int{0}, call: "send",
		wrong: func(rank int) error {
			if rank == 0 {
				_, err := dist.Isend(floats(long), 1, 0) // wrong
				return err
			}
			if err := dist.Barrier(); err != nil {
				return err
			}
			return receive(floats(long), 0, 0)
		},
		right: func(rank int) error {
			if rank == 0 {
				w, err := dist.Isend(floats(long), 1, 0)
				if err != nil {
					return err
				}
				if err := dist.Barrier(); err != nil {
					return err
				}
				return await(w, nil)
			}
			if err := dist.Barrier(); err != nil {
				return err
			}
			return receive(floats(long), 0, 0)
		},
	},
	{
		name: "call not waited for before the group ends", origin: "iColl", kind: is[*dist.UnfinishedError](), ranks: []int{0}, call: "all_reduce",
		wrong: func(rank int) error {
			if rank == 0 {
				_, err := dist.AllReduceAsync(floats(4), dist.Sum) // wrong
				return err
			}
			return receive(floats(4), 0, 0) // rank 0 sends nothing: it has left
		},
		right: func(int) error {
			return await(dist.AllReduceAsync(floats(4), dist.Sum))
		},
	},
	{
		name: "call not waited for before a group of some ranks ends", origin: "iColl", kind: is[*dist.UnfinishedError](), ranks: []int{0}, call: "barrier",
		wrong: func(rank int) error {
			g, err := dist.NewGroup(nil)
			if err != nil {
				return err
			}
			if rank == 0 {
				if _, err := dist.BarrierAsync(dist.WithGroup(g)); err != nil { // wrong
					return err
				}
				if err := dist.DestroyProcessGroup(dist.WithGroup(g)); err != nil {
					return err
				}
			}
			return dist.Barrier()
		},
		right: func(int) error {
			g, err := dist.NewGroup(nil)
			if err != nil {
				return err
			}
			if err := await(dist.BarrierAsync(dist.WithGroup(g))); err != nil {
				return err
			}
			return dist.DestroyProcessGroup(dist.WithGroup(g))
		},
	},
	{
		name: "wait for a Work that was not started", origin: "pColl", kind: is[*dist.InvalidArgumentError](), ranks: []int{0, 1}, call: "wait",
		wrong: func(int) error {
			var w ccl.Work
			return w.Wait(ctx) // wrong
		},
		right: func(int) error {
			return repeat(1)
		},
	},
	{
		name: "one rank does not start its Work again", origin: "pColl", kind: is[*dist.PeerLostError](), ranks: []int{1}, call: "all_reduce",
		wrong: func(rank int) error {
			g, err := dist.Default()
			if err != nil {
				return err
			}
			var w ccl.Work
			tensor := floats(4)
			for range 2 - rank {
				if err := ccl.AllReduce(ctx, g.Communicator(), tensor, tensor, ccl.Sum, ccl.WithWork(&w)); err != nil {
					return err
				}
				if err := w.Wait(ctx); err != nil { // wrong
					return err
				}
			}
			return nil
		},
		right: func(int) error {
			return repeat(2)
		},
	},
	{
		name: "Work that still runs is started again", origin: "pColl", kind: is[*dist.InvalidArgumentError](), ranks: []int{0}, call: "all_reduce",
		wrong: func(rank int) error {
			g, err := dist.Default()
			if err != nil {
				return err
			}
			if rank == 1 {
				return lateAllReduces()
			}
			var w ccl.Work
			tensor := floats(4)
			for range 2 {
				if err := ccl.AllReduce(ctx, g.Communicator(), tensor, tensor, ccl.Sum, ccl.WithWork(&w)); err != nil { // wrong
					return err
				}
			}
			return dist.Send(floats(1), 1, 0)
		},
		right: func(int) error {
			return repeat(2)
		},
	},
	{
		name: "operation that was not made", origin: "iP2P", kind: is[*dist.InvalidArgumentError](), ranks: []int{0, 1}, call: "batch_isend_irecv",
		wrong: func(rank int) error {
			operations := make([]dist.P2POp, 2)
			operations[0] = dist.SendOp(floats(4), 1-rank, 0)
			_, err := dist.BatchIsendIrecv(operations) // wrong
			return err
		},
		right: func(rank int) error {
			works, err := dist.BatchIsendIrecv([]dist.P2POp{dist.SendOp(floats(4), 1-rank, 0), dist.RecvOp(floats(4), 1-rank, 0)})
			for i := range works {
				if err == nil {
					err = await(works[i], nil)
				}
			}
			return err
		},
	},
}

// repeat starts an all-reduce with one Work, many times.
func repeat(times int) error {
	g, err := dist.Default()
	if err != nil {
		return err
	}
	var w ccl.Work
	tensor := floats(4)
	for range times {
		if err := ccl.AllReduce(ctx, g.Communicator(), tensor, tensor, ccl.Sum, ccl.WithWork(&w)); err != nil {
			return err
		}
		if err := w.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Buffers that a rank changes while a call has them.
var localBugs = []bug{
	{
		name: "input of a queued call", origin: "iColl", kind: is[*dist.InvalidArgumentError](), ranks: []int{0}, call: "all_reduce", isDebugged: true,
		wrong: func(rank int) error {
			if rank == 1 {
				return lateAllReduces()
			}
			first, err := dist.AllReduceAsync(floats(4), dist.Sum) // runs when rank 1 calls
			if err != nil {
				return err
			}
			tensor := floats(4)
			second, err := dist.AllReduceAsync(tensor, dist.Sum) // wrong
			if err != nil {
				return err
			}
			tensor[0]++
			if err := dist.Send(floats(1), 1, 0); err != nil {
				return err
			}
			return awaitBoth(first)(second, nil)
		},
		right: func(rank int) error {
			if rank == 1 {
				return lateAllReduces()
			}
			first, err := dist.AllReduceAsync(floats(4), dist.Sum)
			if err != nil {
				return err
			}
			tensor := floats(4)
			tensor[0]++
			second, err := dist.AllReduceAsync(tensor, dist.Sum)
			if err != nil {
				return err
			}
			if err := dist.Send(floats(1), 1, 0); err != nil {
				return err
			}
			return awaitBoth(first)(second, nil)
		},
	},
	{
		name: "input of a call that runs", origin: "iColl", kind: is[*dist.InvalidArgumentError](), ranks: []int{0}, call: "all_gather", isDebugged: true,
		wrong: func(rank int) error {
			if rank == 1 {
				if err := receive(floats(1), 0, 0); err != nil {
					return err
				}
				return dist.AllGather(floats(2*long), floats(long))
			}
			input := floats(long)
			w, err := dist.AllGatherAsync(floats(2*long), input) // wrong
			if err != nil {
				return err
			}
			input[0]++
			if err := dist.Send(floats(1), 1, 0); err != nil {
				return err
			}
			return await(w, nil)
		},
		right: func(rank int) error {
			if rank == 1 {
				if err := receive(floats(1), 0, 0); err != nil {
					return err
				}
				return dist.AllGather(floats(2*long), floats(long))
			}
			w, err := dist.AllGatherAsync(floats(2*long), floats(long))
			if err != nil {
				return err
			}
			if err := dist.Send(floats(1), 1, 0); err != nil {
				return err
			}
			return await(w, nil)
		},
	},
	{
		name: "input of a long send", origin: "iP2P", kind: is[*dist.InvalidArgumentError](), ranks: []int{0}, call: "send", isDebugged: true,
		wrong: func(rank int) error {
			if rank == 1 {
				if err := dist.Barrier(); err != nil {
					return err
				}
				return receive(floats(long), 0, 0)
			}
			tensor := floats(long)
			w, err := dist.Isend(tensor, 1, 0) // wrong
			if err != nil {
				return err
			}
			tensor[0]++
			if err := dist.Barrier(); err != nil {
				return err
			}
			return await(w, nil)
		},
		right: func(rank int) error {
			if rank == 1 {
				if err := dist.Barrier(); err != nil {
					return err
				}
				return receive(floats(long), 0, 0)
			}
			tensor := floats(long)
			tensor[0]++
			w, err := dist.Isend(tensor, 1, 0)
			if err != nil {
				return err
			}
			if err := dist.Barrier(); err != nil {
				return err
			}
			return await(w, nil)
		},
	},
	{
		name: "output of a receive", origin: "iP2P", call: "recv", isDebugged: true, missed: "a receive's buffer is not compared",
		wrong: func(rank int) error {
			if rank == 1 {
				if err := receive(floats(1), 0, 1); err != nil {
					return err
				}
				return dist.Send(floats(4), 0, 0)
			}
			tensor := floats(4)
			w, err := dist.Irecv(tensor, 1, 0) // wrong
			if err != nil {
				return err
			}
			tensor[0]++
			if err := dist.Send(floats(1), 1, 1); err != nil {
				return err
			}
			return w.Wait(ctx)
		},
		right: func(rank int) error {
			if rank == 1 {
				return dist.Send(floats(4), 0, 0)
			}
			tensor := floats(4)
			tensor[0]++
			return await(dist.Irecv(tensor, 1, 0))
		},
	},
	{
		name: "output that is read before the call has ended", origin: "iColl", call: "all_reduce", isDebugged: true, missed: "reads are not seen",
		wrong: func(rank int) error {
			if rank == 1 {
				if err := receive(floats(1), 0, 0); err != nil {
					return err
				}
				return dist.AllReduce(floats(4), dist.Sum)
			}
			tensor := floats(4)
			w, err := dist.AllReduceAsync(tensor, dist.Sum) // wrong
			if err != nil {
				return err
			}
			if err := dist.Send(tensor[:1], 1, 0); err != nil {
				return err
			}
			return await(w, nil)
		},
		right: func(rank int) error {
			tensor := floats(4)
			if err := dist.AllReduce(tensor, dist.Sum); err != nil {
				return err
			}
			if rank == 1 {
				return receive(floats(1), 0, 0)
			}
			return dist.Send(tensor[:1], 1, 0)
		},
	},
	{
		name: "two calls of one rank at the same time", origin: "Coll", kind: value(dist.ErrConcurrentUse), ranks: []int{0}, call: "all_reduce", isSometimes: true,
		wrong: func(rank int) error {
			if rank == 1 {
				if err := receive(floats(1), 0, 0); err != nil {
					return err
				}
				for range 2 {
					if err := dist.AllReduce(floats(4), dist.Sum); err != nil {
						return err
					}
				}
				return nil
			}
			errs := beside(func() error {
				return dist.AllReduce(floats(4), dist.Sum) // wrong
			})
			if err := dist.Send(floats(1), 1, 0); err != nil {
				return err
			}
			if err := dist.AllReduce(floats(4), dist.Sum); err != nil { // wrong
				return err
			}
			return errs()
		},
		right: func(rank int) error {
			if rank == 1 {
				return lateAllReduces()
			}
			first, err := dist.AllReduceAsync(floats(4), dist.Sum)
			if err != nil {
				return err
			}
			if err := dist.Send(floats(1), 1, 0); err != nil {
				return err
			}
			return awaitBoth(first)(dist.AllReduceAsync(floats(4), dist.Sum))
		},
	},
}

// lateAllReduces makes two all-reduces once rank 0 has sent a message.
func lateAllReduces() error {
	if err := receive(floats(1), 0, 0); err != nil {
		return err
	}
	for range 2 {
		if err := dist.AllReduce(floats(4), dist.Sum); err != nil {
			return err
		}
	}
	return nil
}

// unmatched is the error of a receive that nothing has matched, or can match any more.
var unmatched = mistake{"a receive without a message", func(err error) bool {
	return is[*dist.UnfinishedError]().in(err) || is[*dist.PeerLostError]().in(err)
}}
