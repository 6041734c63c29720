package seeds

import (
	"github.com/goccl/goccl/dist"
)

// Programs that are right only if messages arrive in one order.
var raceBugs = []bug{
	{
		name: "lengths by the order of senders", origin: "P2P", kind: differ("count"), ranks: []int{0}, call: "recv", size: 3, isSometimes: true,
		wrong: func(rank int) error {
			if rank != 0 {
				return dist.Send(floats(4*rank), 0, 0)
			}
			if _, err := dist.Recv(floats(4), dist.AnySource, 0); err != nil { // wrong
				return err
			}
			return receive(floats(8), dist.AnySource, 0)
		},
		right: func(rank int) error {
			if rank != 0 {
				return dist.Send(floats(4*rank), 0, 0)
			}
			if err := receive(floats(4), 1, 0); err != nil {
				return err
			}
			return receive(floats(8), 2, 0)
		},
	},
	{
		name: "types by the order of senders", origin: "iP2P", kind: differ("dtype"), ranks: []int{0}, call: "recv", size: 3, isSometimes: true,
		wrong: func(rank int) error {
			switch rank {
			case 1:
				return dist.Send(floats(4), 0, 0)
			case 2:
				return dist.Send(make([]int32, 4), 0, 0)
			}
			w, err := dist.Irecv(floats(4), dist.AnySource, 0)
			if err != nil {
				return err
			}
			if err := w.Wait(ctx); err != nil { // wrong
				return err
			}
			return await(dist.Irecv(make([]int32, 4), dist.AnySource, 0))
		},
		right: func(rank int) error {
			switch rank {
			case 1:
				return dist.Send(floats(4), 0, 1)
			case 2:
				return dist.Send(make([]int32, 4), 0, 2)
			}
			if err := await(dist.Irecv(floats(4), dist.AnySource, 1)); err != nil {
				return err
			}
			return await(dist.Irecv(make([]int32, 4), dist.AnySource, 2))
		},
	},
	{
		name: "receive from any rank, then from one", origin: "P2P", kind: is[*dist.PeerLostError](), ranks: []int{1}, call: "recv", size: 3, isSometimes: true,
		wrong: func(rank int) error {
			if rank != 0 {
				return dist.Send(floats(4), 0, 0)
			}
			if err := receive(floats(4), dist.AnySource, 0); err != nil {
				return err
			}
			_, err := dist.Recv(floats(4), 1, 0) // wrong
			return err
		},
		right: func(rank int) error {
			if rank != 0 {
				return dist.Send(floats(4), 0, 0)
			}
			if err := receive(floats(4), 2, 0); err != nil {
				return err
			}
			return receive(floats(4), 1, 0)
		},
	},
	{
		name: "asynchronous receive from any rank, then from one", origin: "iP2P", kind: is[*dist.TimeoutError](), ranks: []int{1}, call: "recv", size: 3, isSometimes: true,
		wrong: func(rank int) error {
			if rank != 0 {
				if err := dist.Send(floats(4), 0, 0); err != nil {
					return err
				}
				return dist.Barrier()
			}
			if err := await(dist.Irecv(floats(4), dist.AnySource, 0)); err != nil {
				return err
			}
			w, err := dist.Irecv(floats(4), 1, 0)
			if err != nil {
				return err
			}
			if err := w.Wait(ctx); err != nil { // wrong
				return err
			}
			return dist.Barrier()
		},
		right: func(rank int) error {
			if rank != 0 {
				if err := dist.Send(floats(4), 0, rank); err != nil {
					return err
				}
				return dist.Barrier()
			}
			if err := await(dist.Irecv(floats(4), dist.AnySource, 2)); err != nil {
				return err
			}
			if err := await(dist.Irecv(floats(4), 1, 1)); err != nil {
				return err
			}
			return dist.Barrier()
		},
	},
	{
		name: "receive from any rank before a collective", origin: "Coll", kind: is[*dist.TimeoutError](), ranks: []int{0, 2}, call: "all_reduce", size: 3, isSometimes: true,
		wrong: func(rank int) error {
			if rank == 0 {
				if err := receive(floats(4), dist.AnySource, 0); err != nil {
					return err
				}
				if _, err := dist.Recv(floats(4), 2, 0); err != nil { // wrong
					return err
				}
				return dist.AllReduce(floats(4), dist.Sum)
			}
			if err := dist.Send(floats(4), 0, 0); err != nil {
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum) // wrong
		},
		right: func(rank int) error {
			if rank == 0 {
				for range 2 {
					if err := receive(floats(4), dist.AnySource, 0); err != nil {
						return err
					}
				}
				return dist.AllReduce(floats(4), dist.Sum)
			}
			if err := dist.Send(floats(4), 0, 0); err != nil {
				return err
			}
			return dist.AllReduce(floats(4), dist.Sum)
		},
	},
	{
		name: "message of a later phase", origin: "P2P", kind: differ("count"), ranks: []int{0}, call: "recv", size: 3, isSometimes: true,
		wrong: func(rank int) error {
			switch rank {
			case 1:
				return dist.Send(floats(4), 0, 0)
			case 2: // its first message is of phase 1, its second one of phase 2
				if err := dist.Send(floats(4), 0, 0); err != nil {
					return err
				}
				return dist.Send(floats(8), 0, 0)
			}
			for range 2 {
				if _, err := dist.Recv(floats(4), dist.AnySource, 0); err != nil { // wrong
					return err
				}
			}
			return receive(floats(8), dist.AnySource, 0)
		},
		right: func(rank int) error {
			switch rank {
			case 1:
				return dist.Send(floats(4), 0, 1)
			case 2:
				if err := dist.Send(floats(4), 0, 1); err != nil {
					return err
				}
				return dist.Send(floats(8), 0, 2)
			}
			for range 2 {
				if err := receive(floats(4), dist.AnySource, 1); err != nil {
					return err
				}
			}
			return receive(floats(8), dist.AnySource, 2)
		},
	},
}

// shared is memory that all ranks have, as they have any global variable.
var shared = floats(2 * long)

// Memory that one rank writes and another one has.
var globalBugs = []bug{
	{
		name: "one tensor of all ranks", origin: "Coll", kind: differ("buffers"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(int) error {
			return dist.AllReduce(shared[:long], dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(long), dist.Sum)
		},
	},
	{
		name: "one short tensor of all ranks", origin: "Coll", kind: differ("buffers"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(int) error {
			return dist.AllReduce(shared[:4], dist.Sum) // wrong
		},
		right: func(int) error {
			return dist.AllReduce(floats(4), dist.Sum)
		},
	},
	{
		name: "tensors that overlap by one element", origin: "Coll", kind: differ("buffers"), ranks: []int{0, 1}, call: "broadcast",
		wrong: func(rank int) error {
			return dist.Broadcast(shared[rank*99:rank*99+100], 0) // wrong
		},
		right: func(int) error {
			return dist.Broadcast(floats(100), 0)
		},
	},
	{
		name: "one output of two ranks", origin: "Coll", kind: differ("buffers"), ranks: []int{1, 2}, call: "all_gather", size: 3,
		wrong: func(rank int) error {
			output := floats(3 * 64)
			if rank > 0 {
				output = shared[:3*64]
			}
			return dist.AllGather(output, floats(64)) // wrong
		},
		right: func(int) error {
			return dist.AllGather(floats(3*64), floats(64))
		},
	},
	{
		name: "input that is another rank's output", origin: "Coll", kind: differ("buffers"), ranks: []int{0, 1}, call: "all_to_all",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.AllToAll(floats(64), shared[:64]) // wrong
			}
			return dist.AllToAll(shared[:64], floats(64)) // wrong
		},
		right: func(int) error {
			return dist.AllToAll(floats(64), shared[:64]) // an input that is only read
		},
	},
	{
		name: "one tensor of an asynchronous call", origin: "iColl", kind: differ("buffers"), ranks: []int{0, 1}, call: "all_reduce",
		wrong: func(int) error {
			w, err := dist.AllReduceAsync(shared[:64], dist.Max)
			if err != nil {
				return err
			}
			return w.Wait(ctx) // wrong
		},
		right: func(int) error {
			return await(dist.AllReduceAsync(floats(64), dist.Max))
		},
	},
	{
		name: "message between two names of one memory", origin: "P2P", call: "recv", missed: "messages' memory is not compared",
		wrong: func(rank int) error {
			if rank == 0 {
				return dist.Send(shared[long:long+4], 1, 0) // wrong
			}
			return receive(shared[long:long+4], 0, 0)
		},
		right: func(rank int) error {
			if rank == 0 {
				return dist.Send(floats(4), 1, 0)
			}
			return receive(floats(4), 0, 0)
		},
	},
}

// Programs that are right only if messages are buffered.
var bufferingBugs = []bug{
	{
		name: "two long sends", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "send",
		wrong: func(rank int) error {
			if err := dist.Send(floats(long), 1-rank, 0); err != nil { // wrong
				return err
			}
			return receive(floats(long), 1-rank, 0)
		},
		right: func(rank int) error {
			_, err := dist.SendRecv(floats(long), 1-rank, floats(long), 1-rank, 0)
			return err
		},
	},
	{
		name: "long sends in a circle", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1, 2}, call: "send", size: 3,
		wrong: func(rank int) error {
			if err := dist.Send(floats(long), (rank+1)%3, 0); err != nil { // wrong
				return err
			}
			return receive(floats(long), (rank+2)%3, 0)
		},
		right: func(rank int) error {
			_, err := dist.SendRecv(floats(long), (rank+2)%3, floats(long), (rank+1)%3, 0)
			return err
		},
	},
	{
		name: "two long asynchronous sends, waited for before the receives", origin: "iP2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "send",
		wrong: func(rank int) error {
			w, err := dist.Isend(floats(long), 1-rank, 0)
			if err != nil {
				return err
			}
			if err := w.Wait(ctx); err != nil { // wrong
				return err
			}
			return receive(floats(long), 1-rank, 0)
		},
		right: func(rank int) error {
			w, err := dist.Isend(floats(long), 1-rank, 0)
			if err != nil {
				return err
			}
			if err := receive(floats(long), 1-rank, 0); err != nil {
				return err
			}
			return await(w, nil)
		},
	},
	{
		name: "long send to the rank itself", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0}, call: "send", size: 1,
		wrong: func(int) error {
			if err := dist.Send(floats(long), 0, 0); err != nil { // wrong
				return err
			}
			return receive(floats(long), 0, 0)
		},
		right: func(int) error {
			_, err := dist.SendRecv(floats(long), 0, floats(long), 0, 0)
			return err
		},
	},
	{
		name: "two short sends", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1}, call: "send",
		wrong: func(rank int) error {
			if err := dist.Send(floats(4), 1-rank, 0); err != nil { // wrong
				return err
			}
			return receive(floats(4), 1-rank, 0)
		},
		right: func(rank int) error {
			_, err := dist.SendRecv(floats(4), 1-rank, floats(4), 1-rank, 0)
			return err
		},
	},
	{
		name: "short sends in a circle", origin: "P2P", kind: is[*dist.TimeoutError](), ranks: []int{0, 1, 2}, call: "send", size: 3,
		wrong: func(rank int) error {
			if err := dist.Send(floats(4), (rank+1)%3, 0); err != nil { // wrong
				return err
			}
			return receive(floats(4), (rank+2)%3, 0)
		},
		right: func(rank int) error {
			_, err := dist.SendRecv(floats(4), (rank+2)%3, floats(4), (rank+1)%3, 0)
			return err
		},
	},
}
