package seeds

import (
	"github.com/goccl/goccl/dist"
)

// Parameters on which ranks do not agree.
var matchingBugs = []bug{
	{
		name: "roots of a broadcast", origin: "Coll", kind: differ("root"), ranks: []int{0, 1}, call: "broadcast",
		wrong: func(rank int) error {
			return dist.Broadcast(floats(4), rank) // wrong
		},
		right: func(int) error {
			return dist.Broadcast(floats(4), 0)
		},
	},
	{
		name: "roots of a reduce", origin: "Coll", kind: differ("root"), ranks: []int{0, 2}, call: "reduce", size: 3,
		wrong: func(rank int) error {
			return dist.Reduce(floats(4), rank/2, dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.Reduce(floats(4), 1, dist.Sum)
		},
	},
	{
		name: "roots of a gather", origin: "Coll", kind: differ("root"), ranks: []int{0, 1}, call: "gather",
		wrong: func(rank int) error {
			return dist.Gather(floats(8), floats(4), rank) // wrong
		},
		right: func(rank int) error {
			return dist.Gather(outputOf(rank, 1, 8), floats(4), 1)
		},
	},
	{
		name: "roots of a scatter", origin: "Coll", kind: differ("root"), ranks: []int{0, 1}, call: "scatter",
		wrong: func(rank int) error {
			return dist.Scatter(floats(4), floats(8), rank) // wrong
		},
		right: func(rank int) error {
			return dist.Scatter(floats(4), outputOf(rank, 1, 8), 1)
		},
	},
	{
		name: "roots of objects", origin: "Coll", kind: differ("root"), ranks: []int{0, 1}, call: "broadcast",
		wrong: func(rank int) error {
			text := "object"
			return dist.BroadcastObject(&text, rank) // wrong
		},
		right: func(int) error {
			text := "object"
			return dist.BroadcastObject(&text, 1)
		},
	},
	{
		name: "operations", origin: "Coll", kind: differ("op"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			return dist.AllReduce(floats(4), []dist.ReduceOp{dist.Sum, dist.Max}[rank]) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Max)
		},
	},
	{
		name: "operations of a reduce-scatter", origin: "Coll", kind: differ("op"), ranks: []int{2}, call: "reduce_scatter", size: 3,
		wrong: func(rank int) error {
			return dist.ReduceScatter(floats(2), floats(6), []dist.ReduceOp{dist.Min, dist.Min, dist.Product}[rank]) // wrong
		},
		right: func(int) error {
			return dist.ReduceScatter(floats(2), floats(6), dist.Min)
		},
	},
	{
		name: "factors of a sum", origin: "Coll", kind: differ("op"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			return dist.AllReduce(floats(4), dist.PremulSum(float64(rank)+0.5)) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.PremulSum(0.5))
		},
	},
	{
		name: "types", origin: "Coll", kind: differ("dtype"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			if rank == 1 {
				return dist.AllReduce(make([]int32, 4), dist.Sum) // wrong
			}
			return dist.AllReduce(floats(4), dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Sum)
		},
	},
	{
		name: "types of a broadcast", origin: "Coll", kind: differ("dtype"), ranks: []int{0, 1}, call: "broadcast",
		wrong: func(rank int) error {
			if rank == 1 {
				return dist.Broadcast(make([]float64, 4), 0) // wrong
			}
			return dist.Broadcast(floats(4), 0) // wrong
		},
		right: func(int) error {
			return dist.Broadcast(make([]float64, 4), 0)
		},
	},
	{
		name: "types of equal size in a gather", origin: "Coll", kind: differ("dtype"), ranks: []int{0, 1}, call: "gather",
		wrong: func(rank int) error {
			if rank == 1 {
				return dist.Gather(nil, make([]uint32, 4), 0) // wrong
			}
			return dist.Gather(floats(8), floats(4), 0) // wrong
		},
		right: func(rank int) error {
			return dist.Gather(outputOf(rank, 0, 8), floats(4), 0)
		},
	},
	{
		name: "types of an asynchronous call", origin: "iColl", kind: differ("dtype"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			if rank == 1 {
				w, err := dist.AllReduceAsync(make([]int64, 4), dist.Sum)
				if err != nil {
					return err
				}
				return w.Wait(ctx) // wrong
			}
			w, err := dist.AllReduceAsync(floats(4), dist.Sum)
			if err != nil {
				return err
			}
			return w.Wait(ctx) // wrong
		},
		right: func(int) error {
			return await(dist.AllReduceAsync(floats(4), dist.Sum))
		},
	},
	{
		name: "lengths", origin: "Coll", kind: differ("count"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			return dist.AllReduce(floats(4+rank), dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Sum)
		},
	},
	{
		name: "lengths of a broadcast", origin: "Coll", kind: differ("count"), ranks: []int{1}, call: "broadcast", size: 3,
		wrong: func(rank int) error {
			return dist.Broadcast(floats([]int{4, 2, 4}[rank]), 0) // wrong
		},
		right: func(int) error {
			return dist.Broadcast(floats(4), 0)
		},
	},
	{
		name: "lengths of an all-gather", origin: "Coll", kind: differ("count"), ranks: []int{0, 1}, call: "all_gather",
		wrong: func(rank int) error {
			n := 3 + rank
			return dist.AllGather(floats(2*n), floats(n)) // wrong
		},
		right: func(int) error {
			return dist.AllGather(floats(6), floats(3))
		},
	},
	{
		name: "lengths of an asynchronous call", origin: "iColl", kind: differ("count"), ranks: []int{0, 1}, call: "reduce_scatter",
		wrong: func(rank int) error {
			n := 1 + rank
			w, err := dist.ReduceScatterAsync(floats(n), floats(2*n), dist.Sum)
			if err != nil {
				return err
			}
			return w.Wait(ctx) // wrong
		},
		right: func(int) error {
			return await(dist.ReduceScatterAsync(floats(2), floats(4), dist.Sum))
		},
	},
	{
		name: "numbers of tensors", origin: "Coll", kind: is[*dist.MismatchError](), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			return dist.AllReduceCoalesced([][]float32{floats(2), floats(2), floats(2)}[:2+rank], dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.AllReduceCoalesced([][]float32{floats(2), floats(2)}, dist.Sum)
		},
	},
	{
		name: "lengths of tensors with one total", origin: "Coll", kind: differ("counts"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			return dist.AllReduceCoalesced([][]float32{floats(2 + rank), floats(3 - rank)}, dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.AllReduceCoalesced([][]float32{floats(2), floats(3)}, dist.Sum)
		},
	},
	{
		name: "blocks of an all-gather", origin: "Coll", kind: differ("counts"), ranks: []int{0, 1}, call: "all_gather",
		wrong: func(rank int) error {
			counts := [][]int{{1, 3}, {2, 2}}[rank]
			return dist.AllGatherV(floats(4), floats(counts[rank]), counts) // wrong
		},
		right: func(rank int) error {
			counts := []int{1, 3}
			return dist.AllGatherV(floats(4), floats(counts[rank]), counts)
		},
	},
	{
		name: "blocks of a gather", origin: "Coll", kind: is[*dist.MismatchError](), ranks: []int{0, 1}, call: "gather",
		wrong: func(rank int) error {
			if rank == 1 {
				return dist.GatherV(nil, floats(3), nil, 0) // wrong
			}
			return dist.GatherV(floats(3), floats(1), []int{1, 2}, 0) // wrong
		},
		right: func(rank int) error {
			if rank == 1 {
				return dist.GatherV(nil, floats(2), nil, 0)
			}
			return dist.GatherV(floats(3), floats(1), []int{1, 2}, 0)
		},
	},
	{
		name: "blocks of an all-to-all", origin: "Coll", kind: is[*dist.MismatchError](), ranks: []int{0, 1}, call: "all_to_all",
		wrong: func(rank int) error {
			return dist.AllToAllV(floats(4), floats(3+rank), []int{2, 2}, []int{2, 1 + rank}) // wrong
		},
		right: func(rank int) error {
			sent, received := [][]int{{1, 2}, {3, 2}}[rank], [][]int{{1, 3}, {2, 2}}[rank]
			return dist.AllToAllV(floats(4), floats(3+2*rank), received, sent)
		},
	},
	{
		name: "keys", origin: "Coll", kind: differ("key"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			return dist.AllReduce(floats(4), dist.Sum, dist.WithKey([]string{"weights", "bias"}[rank])) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Sum, dist.WithKey("weights"))
		},
	},
	{
		name: "algorithms", origin: "Coll", kind: differ("algorithm"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			return dist.AllReduce(floats(4), dist.Sum, dist.WithCallAlgorithm([]string{"direct", "ring"}[rank])) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Sum, dist.WithCallAlgorithm("ring"))
		},
	},
	{
		name: "members of a new group", origin: "Coll+", kind: is[*dist.MismatchError](), ranks: []int{0, 1}, call: "new_group", size: 3,
		wrong: func(rank int) error {
			_, err := dist.NewGroup([]int{0, 1 + rank%2}) // wrong
			return err
		},
		right: func(int) error {
			_, err := dist.NewGroup([]int{0, 2})
			return err
		},
	},
	{
		name: "groups of a call", origin: "Coll+", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "barrier",
		wrong: func(rank int) error {
			g, err := dist.NewGroup(nil)
			switch {
			case err != nil:
				return err
			case rank == 1:
				return dist.Barrier(dist.WithGroup(g)) // wrong
			}
			return dist.Barrier() // wrong
		},
		right: func(int) error {
			g, err := dist.NewGroup(nil)
			if err != nil {
				return err
			}
			return dist.Barrier(dist.WithGroup(g))
		},
	},
	{
		name: "types of a message", origin: "P2P", kind: differ("dtype"), ranks: []int{0, 1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			_, err := dist.Recv(make([]int32, 4), 0, 0) // wrong
			return err
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(make([]int32, 4), 1, 0)
			}
			_, err := dist.Recv(make([]int32, 4), 0, 0)
			return err
		},
	},
	{
		name: "message longer than the buffer", origin: "P2P", kind: differ("count"), ranks: []int{0, 1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(8), 1, 0)
			}
			_, err := dist.Recv(floats(4), 0, 0) // wrong
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
		name: "message shorter than the buffer", origin: "iP2P", kind: differ("count"), ranks: []int{0, 1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return await(dist.Isend(floats(2), 1, 0))
			}
			w, err := dist.Irecv(floats(4), 0, 0)
			if err != nil {
				return err
			}
			return w.Wait(ctx) // wrong
		},
		right: func(rank int) error {
			if rank == 0 {
				return await(dist.Isend(floats(4), 1, 0))
			}
			return await(dist.Irecv(floats(4), 0, 0))
		},
	},
	{
		name: "long message shorter than the buffer", origin: "P2P", kind: differ("count"), ranks: []int{0, 1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(long), 1, 0)
			}
			_, err := dist.Recv(floats(long+1), 0, 0) // wrong
			return err
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(long), 1, 0)
			}
			return receive(floats(long), 0, 0)
		},
	},
	{
		name: "object received as a tensor", origin: "P2P", kind: is[*dist.MismatchError](), ranks: []int{0, 1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.SendObject("text", 1, 0)
			}
			_, err := dist.Recv(floats(4), 0, 0) // wrong
			return err
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.SendObject("text", 1, 0)
			}
			_, _, err := dist.RecvObject[string](0, 0)
			return err
		},
	},
	{
		name: "tags", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				if err := dist.Send(floats(4), 1, 3); err != nil {
					return err
				}
				return dist.Barrier()
			}
			if _, err := dist.Recv(floats(4), 0, 4); err != nil { // wrong
				return err
			}
			return dist.Barrier()
		},
		right: func(rank int) error {
			if rank == 0 {
				if err := dist.Send(floats(4), 1, 3); err != nil {
					return err
				}
				return dist.Barrier()
			}
			if err := receive(floats(4), 0, 3); err != nil {
				return err
			}
			return dist.Barrier()
		},
	},
	{
		name: "tags of the last message", origin: "iP2P", kind: is[*dist.PeerLostError](), ranks: []int{0}, call: "messages of tags [3] have come",
		wrong: func(rank int) error {
			if rank == 0 {
				return await(dist.Isend(floats(4), 1, 3))
			}
			w, err := dist.Irecv(floats(4), 0, 4)
			if err != nil {
				return err
			}
			return w.Wait(ctx) // wrong
		},
		right: func(rank int) error {
			if rank == 0 {
				return await(dist.Isend(floats(4), 1, 4))
			}
			return await(dist.Irecv(floats(4), 0, 4))
		},
	},
	{
		name: "tags of a long message", origin: "P2P", kind: is[*dist.PeerLostError](), ranks: []int{0}, call: "messages of tags [3] have come",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(long), 1, 3)
			}
			_, err := dist.Recv(floats(long), 0, 4) // wrong
			return err
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(long), 1, 4)
			}
			return receive(floats(long), 0, 4)
		},
	},
	{
		name: "sources", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{1}, call: "recv", size: 3,
		wrong: func(rank int) error {
			switch rank {
			case 0:
				if err := dist.Send(floats(4), 2, 0); err != nil {
					return err
				}
			case 2:
				if _, err := dist.Recv(floats(4), 1, 0); err != nil { // wrong
					return err
				}
			}
			return dist.Barrier()
		},
		right: func(rank int) error {
			switch rank {
			case 0:
				if err := dist.Send(floats(4), 2, 0); err != nil {
					return err
				}
			case 2:
				if err := receive(floats(4), 0, 0); err != nil {
					return err
				}
			}
			return dist.Barrier()
		},
	},
	{
		name: "groups of a message", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0}, call: "recv",
		wrong: func(rank int) error {
			g, err := dist.NewGroup(nil)
			if err != nil {
				return err
			}
			if rank == 0 {
				err = dist.Send(floats(4), 1, 0)
			} else {
				_, err = dist.Recv(floats(4), 0, 0, dist.WithGroup(g)) // wrong
			}
			if err != nil {
				return err
			}
			return dist.Barrier()
		},
		right: func(rank int) error {
			g, err := dist.NewGroup(nil)
			if err != nil {
				return err
			}
			if rank == 0 {
				err = dist.Send(floats(4), 1, 0, dist.WithGroup(g))
			} else {
				err = receive(floats(4), 0, 0, dist.WithGroup(g))
			}
			if err != nil {
				return err
			}
			return dist.Barrier()
		},
	},
}
