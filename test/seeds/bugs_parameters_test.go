package seeds

import (
	"errors"
	"strings"

	"github.com/goccl/goccl/dist"
)

// A parameter that no call may have: on one rank, or on all.
var parameterBugs = []bug{
	{
		name: "root below zero", origin: "Coll", kind: is[*dist.InvalidRootError](), ranks: []int{0, 1}, call: "broadcast",
		wrong: func(int) error {
			return dist.Broadcast(floats(4), -1) // wrong
		},
		right: func(int) error {
			return dist.Broadcast(floats(4), 1)
		},
	},
	{
		name: "root above the last rank", origin: "Coll", kind: is[*dist.InvalidRootError](), ranks: []int{0, 1}, call: "reduce",
		wrong: func(int) error {
			return dist.Reduce(floats(4), 2, dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.Reduce(floats(4), 1, dist.Sum)
		},
	},
	{
		name: "root above the last rank of a gather, on one rank", origin: "Coll", kind: is[*dist.InvalidRootError](), ranks: []int{1}, call: "gather",
		wrong: func(rank int) error {
			return dist.Gather(outputOf(rank, 0, 8), floats(4), 7*rank) // wrong
		},
		right: func(rank int) error {
			return dist.Gather(outputOf(rank, 0, 8), floats(4), 0)
		},
	},
	{
		name: "root of a scatter below zero, on one rank", origin: "Coll", kind: is[*dist.InvalidRootError](), ranks: []int{1}, call: "scatter",
		wrong: func(rank int) error {
			return dist.Scatter(floats(4), outputOf(rank, 0, 8), -rank) // wrong
		},
		right: func(rank int) error {
			return dist.Scatter(floats(4), outputOf(rank, 0, 8), 0)
		},
	},
	{
		name: "no operation", origin: "Coll", kind: value(dist.ErrNotImplemented), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(int) error {
			return dist.AllReduce(floats(4), dist.ReduceOp(77)) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Max)
		},
	},
	{
		name: "operation of integers on floats", origin: "Coll", kind: value(dist.ErrNotImplemented), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(int) error {
			return dist.AllReduce(floats(4), dist.BAnd) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(make([]int32, 4), dist.BAnd)
		},
	},
	{
		name: "order of complex numbers", origin: "Coll", kind: value(dist.ErrNotImplemented), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(int) error {
			return dist.AllReduce(make([]complex64, 4), dist.Min) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(make([]complex64, 4), dist.Sum)
		},
	},
	{
		name: "mean of a scan", origin: "Coll", kind: value(dist.ErrNotImplemented), ranks: []int{0, 1}, call: "scan",
		wrong: func(int) error {
			return dist.Scan(floats(4), floats(4), dist.Avg) // wrong
		},
		right: func(int) error {
			return dist.Scan(floats(4), floats(4), dist.Sum)
		},
	},
	{
		name: "no buffer", origin: "Coll", kind: value(dist.ErrNotDeployed), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(int) error {
			return dist.AllReduce[float32](nil, dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(1), dist.Sum)
		},
	},
	{
		name: "no buffer on one rank", origin: "Coll", kind: is[*dist.InvalidBufferSizeError](), ranks: []int{1}, call: "all_reduce",
		wrong: func(rank int) error {
			return dist.AllReduce(floats(4-4*rank), dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Sum)
		},
	},
	{
		name: "output too short", origin: "Coll", kind: is[*dist.InvalidBufferSizeError](), ranks: []int{0, 1}, call: "all_gather",
		wrong: func(int) error {
			return dist.AllGather(floats(7), floats(4)) // wrong
		},
		right: func(int) error {
			return dist.AllGather(floats(8), floats(4))
		},
	},
	{
		name: "input too short", origin: "Coll", kind: is[*dist.InvalidBufferSizeError](), ranks: []int{0, 1}, call: "reduce_scatter",
		wrong: func(int) error {
			return dist.ReduceScatter(floats(4), floats(4), dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.ReduceScatter(floats(4), floats(8), dist.Sum)
		},
	},
	{
		name: "length that ranks do not divide", origin: "Coll", kind: is[*dist.InvalidArgumentError](), ranks: []int{0, 1}, call: "all_to_all",
		wrong: func(int) error {
			return dist.AllToAll(floats(5), floats(5)) // wrong
		},
		right: func(int) error {
			return dist.AllToAll(floats(6), floats(6))
		},
	},
	{
		name: "count below zero", origin: "Coll", kind: is[*dist.InvalidArgumentError](), ranks: []int{0, 1}, call: "all_to_all",
		wrong: func(int) error {
			return dist.AllToAllV(floats(4), floats(4), []int{2, 2}, []int{5, -1}) // wrong
		},
		right: func(int) error {
			return dist.AllToAllV(floats(4), floats(4), []int{2, 2}, []int{2, 2})
		},
	},
	{
		name: "output on a rank that is not the root", origin: "Coll", kind: is[*dist.InvalidBufferSizeError](), ranks: []int{1}, call: "gather",
		wrong: func(int) error {
			return dist.Gather(floats(8), floats(4), 0) // wrong
		},
		right: func(rank int) error {
			return dist.Gather(outputOf(rank, 0, 8), floats(4), 0)
		},
	},
	{
		name: "input inside the output", origin: "Coll", kind: is[*dist.InvalidArgumentError](), ranks: []int{0, 1}, call: "all_gather",
		wrong: func(int) error {
			output := floats(8)
			return dist.AllGather(output, output[2:6]) // wrong
		},
		right: func(rank int) error {
			output := floats(8)
			return dist.AllGather(output, output[4*rank:4*rank+4])
		},
	},
	{
		name: "destination above the last rank", origin: "P2P", kind: is[*dist.InvalidArgumentError](), ranks: []int{0}, call: "send",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 2, 0) // wrong
			}
			return receive(floats(4), 0, 0)
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			return receive(floats(4), 0, 0)
		},
	},
	{
		name: "source below zero", origin: "P2P", kind: is[*dist.InvalidArgumentError](), ranks: []int{1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			_, err := dist.Recv(floats(4), -7, 0) // wrong
			return err
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			return receive(floats(4), 0, 0)
		},
	},
	{
		name: "tag of a send below zero", origin: "P2P", kind: is[*dist.InvalidArgumentError](), ranks: []int{0}, call: "send",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, -1) // wrong
			}
			return receive(floats(4), 0, 0)
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			return receive(floats(4), 0, 0)
		},
	},
	{
		name: "tag of a receive below zero", origin: "iP2P", kind: is[*dist.InvalidArgumentError](), ranks: []int{1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			return await(dist.Irecv(floats(4), 0, -3)) // wrong
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			return await(dist.Irecv(floats(4), 0, 0))
		},
	},
	{
		name: "destination of an asynchronous send", origin: "iP2P", kind: is[*dist.InvalidArgumentError](), ranks: []int{0}, call: "send",
		wrong: func(rank int) error {
			if rank == 0 {
				return await(dist.Isend(floats(4), 9, 0)) // wrong
			}
			return receive(floats(4), 0, 0)
		},
		right: func(rank int) error {
			if rank == 0 {
				return await(dist.Isend(floats(4), 1, 0))
			}
			return receive(floats(4), 0, 0)
		},
	},
	{
		name: "one buffer to send and to receive", origin: "P2P", kind: is[*dist.InvalidArgumentError](), ranks: []int{0, 1}, call: "send_recv",
		wrong: func(rank int) error {
			tensor := floats(4)
			_, err := dist.SendRecv(tensor, 1-rank, tensor, 1-rank, 0) // wrong
			return err
		},
		right: func(rank int) error {
			_, err := dist.SendRecv(floats(4), 1-rank, floats(4), 1-rank, 0)
			return err
		},
	},
	{
		name: "no group", origin: "Coll+", kind: is[*dist.InvalidArgumentError](), ranks: []int{0, 1}, call: "barrier",
		wrong: func(int) error {
			return dist.Barrier(dist.WithGroup(nil)) // wrong
		},
		right: func(int) error { return dist.Barrier() },
	},
	{
		name: "group of which the rank is no member", origin: "Coll+", kind: is[*dist.InvalidArgumentError](), ranks: []int{1}, call: "all_reduce",
		wrong: func(int) error {
			g, err := dist.NewGroup([]int{0})
			if err != nil {
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum, dist.WithGroup(g)) // wrong
		},
		right: func(rank int) error {
			g, err := dist.NewGroup([]int{0})
			if err != nil || rank == 1 {
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum, dist.WithGroup(g))
		},
	},
	{
		name: "send in a group that has no such rank", origin: "P2P", kind: is[*dist.InvalidArgumentError](), ranks: []int{0}, call: "send", size: 3,
		wrong: func(rank int) error {
			g, err := dist.NewGroup([]int{0, 1})
			if err != nil || rank != 0 {
				return err
			}
			return dist.Send(floats(4), 2, 0, dist.WithGroup(g)) // wrong
		},
		right: func(rank int) error {
			g, err := dist.NewGroup([]int{0, 1})
			switch {
			case err != nil || rank == 2:
				return err
			case rank == 0:
				return dist.Send(floats(4), 1, 0, dist.WithGroup(g))
			}
			return receive(floats(4), 0, 0, dist.WithGroup(g))
		},
	},
	{
		name: "group of a rank that does not exist", origin: "Coll+", kind: is[*dist.InvalidArgumentError](), ranks: []int{0, 1}, call: "new_group",
		wrong: func(int) error {
			_, err := dist.NewGroup([]int{0, 2}) // wrong
			return err
		},
		right: func(int) error {
			_, err := dist.NewGroup([]int{0, 1})
			return err
		},
	},
	{
		name: "group that has a rank twice", origin: "Coll+", kind: is[*dist.InvalidArgumentError](), ranks: []int{0, 1}, call: "new_group",
		wrong: func(int) error {
			_, err := dist.NewGroup([]int{1, 1}) // wrong
			return err
		},
		right: func(int) error {
			_, err := dist.NewGroup([]int{1})
			return err
		},
	},
	{
		name: "algorithm that does not exist, on one rank", origin: "Coll", kind: unknownEntry, ranks: []int{1}, call: "all_reduce",
		wrong: func(rank int) error {
			return dist.AllReduce(floats(4), dist.Sum, dist.WithCallAlgorithm([]string{"direct", "rink"}[rank])) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Sum, dist.WithCallAlgorithm("direct"))
		},
	},
	{
		name: "call before the group exists", origin: "Coll", kind: value(dist.ErrNotInitialized), ranks: []int{0, 1}, call: "all_reduce", isBare: true,
		wrong: func(int) error {
			return dist.AllReduce(floats(4), dist.Sum) // wrong
		},
		right: func(int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum)
		},
	},
	{
		name: "call after the group has ended", origin: "Coll", kind: value(dist.ErrNotInitialized), ranks: []int{0, 1}, call: "barrier", isBare: true,
		wrong: func(int) error {
			if err := errors.Join(dist.InitProcessGroup("ccl"), dist.DestroyProcessGroup()); err != nil {
				return err
			}
			return dist.Barrier() // wrong
		},
		right: func(int) error {
			return errors.Join(dist.InitProcessGroup("ccl"), dist.Barrier(), dist.DestroyProcessGroup())
		},
	},
	{
		name: "group is made twice", origin: "Coll+", kind: value(dist.ErrAlreadyInitialized), ranks: []int{0, 1}, call: "", isBare: true,
		wrong: func(int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			return dist.InitProcessGroup("ccl") // wrong
		},
		right: func(int) error {
			return errors.Join(dist.InitProcessGroup("ccl"), dist.DestroyProcessGroup(), dist.InitProcessGroup("ccl"))
		},
	},
}

// unknownEntry is the error of an entry that ccl.yaml does not have.
var unknownEntry = mistake{"an unknown entry", func(err error) bool { return strings.Contains(err.Error(), "there is no entry") }}
