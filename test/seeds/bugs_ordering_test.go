package seeds

import (
	"github.com/goccl/goccl/dist"
)

// Calls in different orders, and calls that a rank does not make.
var orderingBugs = []bug{
	{
		name: "reduce and all-reduce in two orders", origin: "Coll", kind: differ("collective"), ranks: []int{0, 1}, call: "reduce",
		wrong: func(rank int) error {
			if rank == 0 {
				if err := dist.AllReduce(floats(4), dist.Sum); err != nil { // wrong
					return err
				}
				return dist.Reduce(floats(4), 0, dist.Sum)
			}
			if err := dist.Reduce(floats(4), 0, dist.Sum); err != nil { // wrong
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum)
		},
		right: func(int) error {
			if err := dist.AllReduce(floats(4), dist.Sum); err != nil {
				return err
			}
			return dist.Reduce(floats(4), 0, dist.Sum)
		},
	},
	{
		name: "barrier and broadcast", origin: "Coll", kind: differ("collective"), ranks: []int{1}, call: "barrier", size: 3,
		wrong: func(rank int) error {
			if rank == 1 {
				return dist.Barrier() // wrong
			}
			return dist.Broadcast(floats(4), 0) // wrong
		},
		right: func(int) error {
			return dist.Broadcast(floats(4), 0)
		},
	},
	{
		name: "gather and scatter", origin: "Coll", kind: differ("collective"), ranks: []int{0, 1}, call: "gather",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Gather(floats(8), floats(4), 0) // wrong
			}
			return dist.Scatter(floats(4), nil, 0) // wrong
		},
		right: func(rank int) error {
			return dist.Gather(outputOf(rank, 0, 8), floats(4), 0)
		},
	},
	{
		name: "scan and exclusive scan", origin: "Coll", kind: differ("collective"), ranks: []int{0, 1}, call: "scan",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Scan(floats(4), floats(4), dist.Sum) // wrong
			}
			return dist.ExScan(floats(4), floats(4), dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.Scan(floats(4), floats(4), dist.Sum)
		},
	},
	{
		name: "objects and tensors", origin: "Coll", kind: is[*dist.MismatchError](), ranks: []int{0, 1}, call: "broadcast",
		wrong: func(rank int) error {
			if rank == 0 {
				text := "object"
				return dist.BroadcastObject(&text, 0) // wrong
			}
			return dist.AllReduce(floats(4), dist.Sum) // wrong
		},
		right: func(int) error {
			text := "object"
			return dist.BroadcastObject(&text, 0)
		},
	},
	{
		name: "asynchronous calls in two orders", origin: "iColl", kind: differ("collective"), ranks: []int{0, 1}, call: "barrier",
		wrong: func(rank int) error {
			if rank == 0 {
				first, err := dist.BarrierAsync()
				if err != nil {
					return err
				}
				if _, err := dist.AllReduceAsync(floats(4), dist.Sum); err != nil {
					return err
				}
				return first.Wait(ctx) // wrong
			}
			first, err := dist.AllReduceAsync(floats(4), dist.Sum)
			if err != nil {
				return err
			}
			if _, err := dist.BarrierAsync(); err != nil {
				return err
			}
			return first.Wait(ctx) // wrong
		},
		right: func(int) error {
			first, err := dist.BarrierAsync()
			if err != nil {
				return err
			}
			return awaitBoth(first)(dist.AllReduceAsync(floats(4), dist.Sum))
		},
	},
	{
		name: "asynchronous call that a rank makes after another", origin: "iColl", kind: differ("collective"), ranks: []int{0, 1}, call: "broadcast",
		wrong: func(rank int) error {
			if rank == 1 {
				if err := dist.Barrier(); err != nil { // wrong
					return err
				}
				return await(dist.BroadcastAsync(floats(4), 0))
			}
			w, err := dist.BroadcastAsync(floats(4), 0) // wrong
			if err != nil {
				return err
			}
			if err := dist.Barrier(); err != nil {
				return err
			}
			return await(w, nil)
		},
		right: func(int) error {
			w, err := dist.BroadcastAsync(floats(4), 0)
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
		name: "collective that one rank does not call", origin: "Coll", kind: is[*dist.PeerLostError](), ranks: []int{1}, call: "all_reduce",
		wrong: func(rank int) error {
			if rank == 1 {
				return nil
			}
			return dist.AllReduce(floats(4), dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Sum)
		},
	},
	{
		name: "broadcast that the root alone calls", origin: "Coll", kind: is[*dist.PeerLostError](), ranks: []int{1}, call: "broadcast",
		wrong: func(rank int) error {
			if rank == 1 {
				return nil
			}
			return dist.Broadcast(floats(4), 0) // wrong
		},
		right: func(int) error {
			return dist.Broadcast(floats(4), 0)
		},
	},
	{
		name: "asynchronous collective that one rank does not start", origin: "iColl", kind: is[*dist.PeerLostError](), ranks: []int{2}, call: "barrier", size: 3,
		wrong: func(rank int) error {
			if rank == 2 {
				return nil
			}
			w, err := dist.BarrierAsync()
			if err != nil {
				return err
			}
			return w.Wait(ctx) // wrong
		},
		right: func(int) error {
			return await(dist.BarrierAsync())
		},
	},
	{
		name: "collective that one rank skips by its input", origin: "Coll", kind: differ("collective"), ranks: []int{1}, call: "all_reduce", size: 3,
		wrong: func(rank int) error {
			if loss := float64(rank) - 1; loss != 0 {
				if err := dist.AllReduce(floats(4), dist.Sum); err != nil { // wrong
					return err
				}
			}
			return dist.Barrier() // wrong
		},
		right: func(int) error {
			if err := dist.AllReduce(floats(4), dist.Sum); err != nil {
				return err
			}
			return dist.Barrier()
		},
	},
	{
		name: "iteration that one rank skips", origin: "Coll", kind: is[*dist.PeerLostError](), ranks: []int{1}, call: "all_reduce",
		wrong: func(rank int) error {
			for i := range 3 {
				if rank == 1 && i == 1 {
					continue
				}
				if err := dist.AllReduce(floats(4), dist.Sum); err != nil { // wrong
					return err
				}
			}
			return nil
		},
		right: func(int) error {
			for range 3 {
				if err := dist.AllReduce(floats(4), dist.Sum); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		name: "iteration with a key that one rank skips", origin: "Coll", kind: differ("key"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			for i := range 3 {
				if rank == 1 && i == 1 {
					continue
				}
				if err := dist.AllReduce(floats(4), dist.Sum, dist.WithKey(keys[i])); err != nil { // wrong
					return err
				}
			}
			return nil
		},
		right: func(int) error {
			for i := range 3 {
				if err := dist.AllReduce(floats(4), dist.Sum, dist.WithKey(keys[i])); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		name: "order of a map", origin: "Coll", kind: differ("key"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			for i := range 2 {
				if err := dist.AllReduce(floats(4), dist.Sum, dist.WithKey(keys[(i+rank)%2])); err != nil { // wrong
					return err
				}
			}
			return nil
		},
		right: func(int) error {
			for i := range 2 {
				if err := dist.AllReduce(floats(4), dist.Sum, dist.WithKey(keys[i])); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		name: "two groups in two orders", origin: "Coll+", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(rank int) error {
			g, err := dist.NewGroup(nil)
			if err != nil {
				return err
			}
			if rank == 0 {
				if err := dist.AllReduce(floats(4), dist.Sum, dist.WithGroup(g)); err != nil { // wrong
					return err
				}
				return dist.AllReduce(floats(4), dist.Sum)
			}
			if err := dist.AllReduce(floats(4), dist.Sum); err != nil { // wrong
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum, dist.WithGroup(g))
		},
		right: func(int) error {
			g, err := dist.NewGroup(nil)
			if err != nil {
				return err
			}
			if err := dist.AllReduce(floats(4), dist.Sum, dist.WithGroup(g)); err != nil {
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum)
		},
	},
	{
		name: "three groups in a circle", origin: "Coll+", kind: is[*dist.TimeoutError](), ranks: []int{0, 1, 2}, call: "barrier", size: 3,
		wrong: func(rank int) error {
			after, before, err := ringGroups(rank)
			if err != nil {
				return err
			}
			if err := dist.Barrier(dist.WithGroup(after)); err != nil { // wrong
				return err
			}
			return dist.Barrier(dist.WithGroup(before))
		},
		right: func(rank int) error {
			after, before, err := ringGroups(rank)
			if err != nil {
				return err
			}
			if rank == 2 { // its pair with rank 0 is the last of rank 0's
				after, before = before, after
			}
			if rank == 0 {
				if err := dist.Barrier(dist.WithGroup(after)); err != nil {
					return err
				}
				return dist.Barrier(dist.WithGroup(before))
			}
			if rank == 1 {
				after, before = before, after
			}
			if err := dist.Barrier(dist.WithGroup(after)); err != nil {
				return err
			}
			return dist.Barrier(dist.WithGroup(before))
		},
	},
	{
		name: "groups made in two orders", origin: "Coll+", kind: is[*dist.MismatchError](), ranks: []int{0, 1}, call: "new_group", size: 3,
		wrong: func(rank int) error {
			lists := [][]int{{0, 1}, {1, 2}}
			if rank == 1 {
				lists[0], lists[1] = lists[1], lists[0]
			}
			for _, list := range lists {
				if _, err := dist.NewGroup(list); err != nil { // wrong
					return err
				}
			}
			return nil
		},
		right: func(int) error {
			for _, list := range [][]int{{0, 1}, {1, 2}} {
				if _, err := dist.NewGroup(list); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		name: "group that its members alone make", origin: "Coll+", kind: is[*dist.PeerLostError](), ranks: []int{2}, call: "new_group", size: 3,
		wrong: func(rank int) error {
			if rank == 2 {
				return nil
			}
			_, err := dist.NewGroup([]int{0, 1}) // wrong
			return err
		},
		right: func(int) error {
			_, err := dist.NewGroup([]int{0, 1})
			return err
		},
	},
	{
		name: "rank that does not join", origin: "Coll+", kind: is[*dist.PeerLostError](), ranks: []int{1}, call: "initialization", isBare: true,
		wrong: func(rank int) error {
			if rank == 1 {
				return nil
			}
			return dist.InitProcessGroup("ccl") // wrong
		},
		right: func(int) error {
			return dist.InitProcessGroup("ccl")
		},
	},
	{
		name: "end of the group before another rank's last call", origin: "Coll", kind: is[*dist.PeerLostError](), ranks: []int{0}, call: "barrier",
		wrong: func(rank int) error {
			if rank == 0 {
				return nil
			}
			if err := dist.Barrier(); err != nil { // wrong
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum)
		},
		right: func(int) error {
			if err := dist.Barrier(); err != nil {
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum)
		},
	},
	{
		name: "two receives", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "recv",
		wrong: func(rank int) error {
			if _, err := dist.Recv(floats(4), 1-rank, 0); err != nil { // wrong
				return err
			}
			return dist.Send(floats(4), 1-rank, 0)
		},
		right: func(rank int) error {
			if rank == 0 {
				if err := dist.Send(floats(4), 1, 0); err != nil {
					return err
				}
			}
			if err := receive(floats(4), 1-rank, 0); err != nil || rank == 0 {
				return err
			}
			return dist.Send(floats(4), 0, 0)
		},
	},
	{
		name: "receives in a circle", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1, 2}, call: "recv", size: 3,
		wrong: func(rank int) error {
			if _, err := dist.Recv(floats(4), (rank+2)%3, 0); err != nil { // wrong
				return err
			}
			return dist.Send(floats(4), (rank+1)%3, 0)
		},
		right: func(rank int) error {
			_, err := dist.SendRecv(floats(4), (rank+2)%3, floats(4), (rank+1)%3, 0)
			return err
		},
	},
	{
		name: "asynchronous receives in a circle", origin: "iP2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1, 2}, call: "recv", size: 3,
		wrong: func(rank int) error {
			w, err := dist.Irecv(floats(4), (rank+2)%3, 0)
			if err != nil {
				return err
			}
			if err := w.Wait(ctx); err != nil { // wrong
				return err
			}
			return dist.Send(floats(4), (rank+1)%3, 0)
		},
		right: func(rank int) error {
			w, err := dist.Irecv(floats(4), (rank+2)%3, 0)
			if err != nil {
				return err
			}
			if err := dist.Send(floats(4), (rank+1)%3, 0); err != nil {
				return err
			}
			return await(w, nil)
		},
	},
	{
		name: "receive that is not sent", origin: "P2P", kind: is[*dist.PeerLostError](), ranks: []int{0}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return nil
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
		name: "receive from any rank that is not sent", origin: "P2P", kind: is[*dist.PeerLostError](), ranks: []int{}, call: "recv", size: 3,
		wrong: func(rank int) error {
			if rank != 0 {
				return nil
			}
			_, err := dist.Recv(floats(4), dist.AnySource, 0) // wrong
			return err
		},
		right: func(rank int) error {
			switch rank {
			case 0:
				return receive(floats(4), dist.AnySource, 0)
			case 1:
				return dist.Send(floats(4), 0, 0)
			}
			return nil
		},
	},
	{
		name: "one receive too many", origin: "P2P", kind: is[*dist.PeerLostError](), ranks: []int{0}, call: "recv",
		wrong: func(rank int) error {
			for range 2 {
				if rank == 0 {
					return dist.Send(floats(4), 1, 0)
				}
				if _, err := dist.Recv(floats(4), 0, 0); err != nil { // wrong
					return err
				}
			}
			return nil
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			return receive(floats(4), 0, 0)
		},
	},
	{
		name: "asynchronous receive too many", origin: "iP2P", kind: is[*dist.PeerLostError](), ranks: []int{0}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				return await(dist.Isend(floats(4), 1, 0))
			}
			first, err := dist.Irecv(floats(4), 0, 0)
			if err != nil {
				return err
			}
			second, err := dist.Irecv(floats(4), 0, 0)
			if err != nil {
				return err
			}
			if err := await(first, nil); err != nil {
				return err
			}
			return second.Wait(ctx) // wrong
		},
		right: func(rank int) error {
			if rank == 0 {
				return await(dist.Isend(floats(4), 1, 0))
			}
			return await(dist.Irecv(floats(4), 0, 0))
		},
	},
	{
		name: "long send that is not received", origin: "P2P", kind: is[*dist.PeerLostError](), ranks: []int{1}, call: "send",
		wrong: func(rank int) error {
			if rank == 1 {
				return nil
			}
			return dist.Send(floats(long), 1, 0) // wrong
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(long), 1, 0)
			}
			return receive(floats(long), 0, 0)
		},
	},
	{
		name: "short send that is not received", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "send",
		wrong: func(rank int) error {
			if rank == 0 {
				if err := dist.Send(floats(4), 1, 0); err != nil { // wrong
					return err
				}
			}
			return dist.Barrier()
		},
		right: func(rank int) error {
			if rank == 0 {
				if err := dist.Send(floats(4), 1, 0); err != nil {
					return err
				}
			} else if err := receive(floats(4), 0, 0); err != nil {
				return err
			}
			return dist.Barrier()
		},
	},
	{
		name: "receive before a collective, send after it", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				if err := dist.Barrier(); err != nil { // wrong
					return err
				}
				return dist.Send(floats(4), 1, 0)
			}
			if _, err := dist.Recv(floats(4), 0, 0); err != nil { // wrong
				return err
			}
			return dist.Barrier()
		},
		right: func(rank int) error {
			if rank == 0 {
				if err := dist.Send(floats(4), 1, 0); err != nil {
					return err
				}
				return dist.Barrier()
			}
			if err := receive(floats(4), 0, 0); err != nil {
				return err
			}
			return dist.Barrier()
		},
	},
	{
		name: "long send before a collective, receive after it", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "send",
		wrong: func(rank int) error {
			if rank == 0 {
				if err := dist.Send(floats(long), 1, 0); err != nil { // wrong
					return err
				}
				return dist.Broadcast(floats(4), 0)
			}
			if err := dist.Broadcast(floats(4), 0); err != nil { // wrong
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
				if err := dist.Broadcast(floats(4), 0); err != nil {
					return err
				}
				return await(w, nil)
			}
			if err := dist.Broadcast(floats(4), 0); err != nil {
				return err
			}
			return receive(floats(long), 0, 0)
		},
	},
	{
		name: "wait before a collective for a message after it", origin: "iP2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "recv",
		wrong: func(rank int) error {
			if rank == 0 {
				if err := dist.AllReduce(floats(4), dist.Sum); err != nil { // wrong
					return err
				}
				return dist.Send(floats(4), 1, 0)
			}
			w, err := dist.Irecv(floats(4), 0, 0)
			if err != nil {
				return err
			}
			if err := w.Wait(ctx); err != nil { // wrong
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum)
		},
		right: func(rank int) error {
			if rank == 0 {
				if err := dist.AllReduce(floats(4), dist.Sum); err != nil {
					return err
				}
				return dist.Send(floats(4), 1, 0)
			}
			w, err := dist.Irecv(floats(4), 0, 0)
			if err != nil {
				return err
			}
			if err := dist.AllReduce(floats(4), dist.Sum); err != nil {
				return err
			}
			return await(w, nil)
		},
	},
	{
		name: "message that a rank does not send by its input", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0}, call: "recv", size: 3,
		wrong: func(rank int) error {
			switch rank {
			case 0:
				for to, samples := range []int{0, 3, 0} {
					if samples == 0 {
						continue
					}
					if err := dist.Send(floats(4), to, 0); err != nil {
						return err
					}
				}
			default:
				if _, err := dist.Recv(floats(4), 0, 0); err != nil { // wrong
					return err
				}
			}
			return dist.Barrier()
		},
		right: func(rank int) error {
			switch rank {
			case 0:
				for to := 1; to < 3; to++ {
					if err := dist.Send(floats(4), to, 0); err != nil {
						return err
					}
				}
			default:
				if err := receive(floats(4), 0, 0); err != nil {
					return err
				}
			}
			return dist.Barrier()
		},
	},
}

var keys = []string{"block 0", "block 1", "block 2"}

// ringGroups makes the pairs of neighbours of three ranks, and returns the pairs of the caller with
// the rank after it and with the one before.
func ringGroups(rank int) (after, before *dist.ProcessGroup, err error) {
	pairs := make([]*dist.ProcessGroup, 3)
	for i, list := range [][]int{{0, 1}, {1, 2}, {0, 2}} {
		if pairs[i], err = dist.NewGroup(list); err != nil {
			return nil, nil, err
		}
	}
	return pairs[rank], pairs[(rank+2)%3], nil
}
