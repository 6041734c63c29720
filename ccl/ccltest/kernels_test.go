package ccltest

import (
	"errors"
	"math/bits"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// The kernels that mutants are made of. A fault names the mistake of a kernel; without one the
// kernel is right.

type fault string

const none fault = ""

const (
	wrongBlock   fault = "sends the wrong block"
	oneStep      fault = "is one step short"
	noEpilogue   fault = "forgets Epilogue"
	twoEpilogues fault = "calls Epilogue twice"
	sendFirst    fault = "sends before it receives, on all ranks"
	wrongPeer    fault = "sends to the wrong neighbour"
	skipsEmpty   fault = "does not send blocks that are empty, but waits for them"
	early        fault = "returns early on one rank"
	ownOutput    fault = "takes its output for its input"
	heldOutput   fault = "adds to what its output held before"
	shortCount   fault = "counts elements in 16 bits"
)

// ringReduce is an all-reduce around a ring.
func ringReduce(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		n := c.Size()
		ring := topology.NewRing(n, c.Rank())
		next, in, out := ring.Next, c.In(), c.Out()
		steps := n - 1
		switch {
		case f == early && c.Rank() == 1:
			return nil
		case f == oneStep:
			steps--
		case f == wrongPeer:
			next = ring.Prev
		case f == shortCount:
			count := int(uint16(in.Len()))
			in, out = in.Slice(0, count), out.Slice(0, count)
		}
		have := in
		if f == ownOutput {
			have, in = out, out
		}
		for s := range steps {
			send := have.Block(ring.Block(-s), n)
			recv, with := out.Block(ring.Block(-s-1), n), in.Block(ring.Block(-s-1), n)
			if f == heldOutput {
				with = recv
			}
			var err error
			switch {
			case f == sendFirst:
				if err = c.Send(next, send); err == nil {
					err = c.RecvReduce(ring.Prev, recv, with)
				}
			case f == skipsEmpty && send.Len() == 0:
				err = c.RecvReduce(ring.Prev, recv, with)
			default:
				err = c.SendRecvReduce(next, send, ring.Prev, recv, with)
			}
			if err != nil {
				return err
			}
			have = out
		}
		mine := out.Block(ring.Block(1), n)
		if f != noEpilogue {
			c.Epilogue(mine)
		}
		if f == twoEpilogues {
			c.Epilogue(mine)
		}
		for s := range n - 1 {
			send, recv := ring.Block(1-s), ring.Block(-s)
			if f == wrongBlock {
				send, recv = ring.Block(-s), ring.Block(-s-1)
			}
			if err := c.SendRecv(next, out.Block(send, n), ring.Prev, out.Block(recv, n)); err != nil {
				return err
			}
		}
		return nil
	}
}

func ringReduceCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: 2 * (s.Ranks - 1), Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

const (
	undeclared   fault = "is right for powers of two only, but does not say so"
	withoutPeers fault = "leaves out partners that there are not"
	bothSend     fault = "makes both of two partners send first"
	sameMemory   fault = "receives into the memory that it sends from"
)

// doublingReduce is an all-reduce in which partners exchange all they have, each
// time twice as far away.
func doublingReduce(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		have, next, other := c.In(), c.Scratch(c.In().Len()), c.Out()
		for distance := 1; distance < c.Size(); distance *= 2 {
			peer := c.Rank() ^ distance
			if f == withoutPeers && peer >= c.Size() {
				continue
			}
			var err error
			switch f {
			case bothSend:
				if err = c.Send(peer, have); err == nil {
					err = c.RecvReduce(peer, next, have)
				}
			case sameMemory:
				if err = c.Copy(c.Out(), have); err == nil {
					have, next = c.Out(), c.Out()
					err = c.SendRecvReduce(peer, have, peer, next, have)
				}
			default:
				err = c.SendRecvReduce(peer, have, peer, next, have)
			}
			if err != nil {
				return err
			}
			have, next, other = next, other, next
		}
		c.Epilogue(have)
		return c.Copy(c.Out(), have)
	}
}

func doublingReduceCost(s ccl.Shape) ccl.Cost {
	steps := bits.Len(uint(s.Ranks)) - 1
	return ccl.Cost{Steps: steps, Bytes: steps * s.Ranks * s.Bytes}
}

const (
	firstPiece fault = "reduces the first piece only"
	allParts   fault = "reduces all parts"
	backwards  fault = "reduces its part from the end"
	secondView fault = "opens a second view"
	peersInput fault = "writes to the input of another rank"
	neighbours fault = "reduces its neighbour's part, though it is declared to read its own"
)

// viewReduce is an all-reduce through a view.
func viewReduce(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		if f == secondView {
			if err := c.View(func(*ccl.View) error { return nil }); err != nil {
				return err
			}
		}
		return c.View(func(v *ccl.View) error {
			mine := v.Part()
			switch f {
			case firstPiece:
				if v.Offset() > 0 {
					return nil
				}
			case allParts:
				mine = ccl.Range{Lo: 0, Hi: v.Len()}
			case neighbours:
				size := c.Shape().DType.Size()
				lo, hi := ccl.BlockRange((v.Len()*size+63)/64, (c.Rank()+1)%c.Size(), c.Size())
				mine = ccl.Range{Lo: min(lo*64/size, v.Len()), Hi: min(hi*64/size, v.Len())}
			case backwards:
				for i := mine.Hi; i > mine.Lo; i-- {
					if err := v.ReduceToAll(ccl.Range{Lo: i - 1, Hi: i}); err != nil {
						return err
					}
				}
				return nil
			}
			err := v.ReduceToAll(mine)
			if f == peersInput && !c.Shape().Eager && mine.Lo == 0 && mine.Hi > 0 {
				v.Input((c.Rank() + 1) % c.Size()).Bytes()[0]++
			}
			return err
		})
	}
}

func viewReduceCost(s ccl.Shape) ccl.Cost {
	if s.Eager {
		return ccl.Cost{}
	}
	return ccl.Cost{Steps: 1, Bytes: 2 * (s.Ranks - 1) * s.Bytes}
}

const (
	forgetsOwn fault = "forgets its own input"
	ownCount   fault = "takes its own count for all ranks'"
	packs      fault = "packs what it gathers"
)

// ringGather is an all-gather around a ring.
func ringGather(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		ring := topology.NewRing(c.Size(), c.Rank())
		place := func(rank int) ccl.Buffer {
			b := c.OutBlock(rank)
			switch f {
			case ownCount:
				return b.Slice(0, min(b.Len(), c.In().Len()))
			case packs:
				at := 0
				for r := range rank {
					at += c.BlockLen(r)
				}
				return c.Out().Slice(at, at+b.Len())
			}
			return b
		}
		if f != forgetsOwn {
			if err := c.Copy(place(c.Rank()), c.In()); err != nil {
				return err
			}
		}
		for s := range c.Size() - 1 {
			if err := c.SendRecv(ring.Next, place(ring.Block(-s)), ring.Prev, place(ring.Block(-s-1))); err != nil {
				return err
			}
		}
		return nil
	}
}

func ringGatherCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Total}
}

const (
	rootZero   fault = "takes rank 0 for the root"
	fullCircle fault = "sends one message too many"
)

// chain is a broadcast from each rank to the next.
func chain(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		root := c.Root()
		if f == rootZero {
			root = 0
		}
		ring := topology.NewRing(c.Size(), c.Rank())
		if c.Rank() != root {
			if err := c.Recv(ring.Prev, c.Out()); err != nil {
				return err
			}
		}
		if ring.Next == root && f != fullCircle {
			return nil
		}
		return c.Send(ring.Next, c.Out())
	}
}

func chainCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Bytes}
}

// chunkParams are the parameters of chunkChain.
type chunkParams struct {
	Chunk ccl.ByteSize `yaml:"chunk"`
}

const (
	lastElement   fault = "loses the last element if it is alone in its chunk"
	ignoresParams fault = "does not look at its parameters"
)

// chunkChain is a broadcast from each rank to the next, chunk by chunk.
func chunkChain(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		ring := topology.NewRing(c.Size(), c.Rank())
		out := c.Out()
		chunk := int(ccl.ParamsOf[chunkParams](c).Chunk)
		if f == ignoresParams {
			chunk = 1 << 10
		}
		per := max(1, chunk/c.Shape().DType.Size())
		chunks := (out.Len() + per - 1) / per
		if f == lastElement {
			chunks = (out.Len() + per - 2) / per
		}
		for i := range chunks {
			part := out.Slice(i*per, min((i+1)*per, out.Len()))
			if c.Rank() != c.Root() {
				if err := c.Recv(ring.Prev, part); err != nil {
					return err
				}
			}
			if ring.Next != c.Root() {
				if err := c.Send(ring.Next, part); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// chunkChainCost: the last chunk leaves the root after as many steps as there are
// chunks.
func chunkChainCost(s ccl.Shape) ccl.Cost {
	chunk := int(s.Params.(*chunkParams).Chunk)
	return ccl.Cost{Steps: (s.Bytes+chunk-1)/chunk + s.Ranks - 2, Bytes: (s.Ranks - 1) * s.Bytes}
}

const swaps fault = "receives two messages from one rank in the wrong order"

// inParts is a broadcast from each rank to the next in several messages, all but
// the last of them as long as the vector divided by so much.
func inParts(parts, divisor int, f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		ring := topology.NewRing(c.Size(), c.Rank())
		length := c.Out().Len() / divisor
		for i := range parts {
			if f == swaps && i < 2 {
				i = 1 - i
			}
			if c.Rank() != c.Root() {
				if err := c.Recv(ring.Prev, part(c.Out(), i, length, parts)); err != nil {
					return err
				}
			}
		}
		for i := range parts {
			if ring.Next != c.Root() {
				if err := c.Send(ring.Next, part(c.Out(), i, length, parts)); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func part(b ccl.Buffer, i, length, parts int) ccl.Buffer {
	if i == parts-1 {
		return b.Slice(i*length, b.Len())
	}
	return b.Slice(i*length, (i+1)*length)
}

const oneForTheOther fault = "takes one neighbour's message for the other's where both are one rank"

// twoArms is a broadcast both ways around a ring of at most three, half the vector
// each way.
func twoArms(f fault) func(*ccl.Call) error {
	return func(c *ccl.Call) error {
		ring := topology.NewRing(c.Size(), c.Rank())
		down, up := c.Out().Block(0, 2), c.Out().Block(1, 2)
		afterRoot := ring.Prev == c.Root()
		if f == oneForTheOther {
			afterRoot = ring.Next != c.Root()
		}
		switch {
		case c.Rank() == c.Root():
			if err := c.Send(ring.Next, down); err != nil {
				return err
			}
			return c.Send(ring.Prev, up)
		case afterRoot:
			if err := c.Recv(ring.Prev, down); err != nil {
				return err
			}
			if c.Size() == 2 {
				return c.Recv(ring.Next, up)
			}
			return c.SendRecv(ring.Next, down, ring.Next, up)
		}
		if err := c.Recv(ring.Next, up); err != nil {
			return err
		}
		if c.Size() == 2 {
			return c.Recv(ring.Prev, down)
		}
		return c.SendRecv(ring.Prev, up, ring.Prev, down)
	}
}

func twoArmsCost(s ccl.Shape) ccl.Cost {
	return ccl.Cost{Steps: s.Ranks, Bytes: (s.Ranks - 1) * s.Bytes}
}

func ringReduceKernel(f fault) *ccl.Kernel {
	return &ccl.Kernel{Doc: "around a ring", Cost: ringReduceCost, Run: ringReduce(f)}
}

func doublingReduceKernel(f fault) *ccl.Kernel {
	k := &ccl.Kernel{Doc: "by recursive doubling", Cost: doublingReduceCost, Run: doublingReduce(f)}
	if f != undeclared && f != withoutPeers {
		k.Supports = powersOfTwo
	}
	return k
}

func powersOfTwo(s ccl.Shape) error {
	if s.Ranks&(s.Ranks-1) != 0 {
		return errors.New("it is for powers of two")
	}
	return nil
}

func viewReduceKernel(f fault) *ccl.Kernel {
	return &ccl.Kernel{Doc: "through a view", Cost: viewReduceCost, Run: viewReduce(f), Eager: true, AnyRunner: true}
}

func ringGatherKernel(f fault) *ccl.Kernel {
	return &ccl.Kernel{Doc: "around a ring", Cost: ringGatherCost, Run: ringGather(f)}
}

func chainKernel(f fault) *ccl.Kernel {
	return &ccl.Kernel{Doc: "along a chain", Cost: chainCost, Run: chain(f)}
}

func chunkChainKernel(f fault) *ccl.Kernel {
	return &ccl.Kernel{Doc: "along a chain, in chunks", Cost: chunkChainCost, Run: chunkChain(f)}
}

func inPartsKernel(parts, divisor int, f fault) *ccl.Kernel {
	return &ccl.Kernel{
		Doc: "along a chain, in parts", Run: inParts(parts, divisor, f),
		Cost: func(s ccl.Shape) ccl.Cost {
			return ccl.Cost{Steps: parts * (s.Ranks - 1), Bytes: (s.Ranks - 1) * s.Bytes}
		},
	}
}

func twoArmsKernel(f fault) *ccl.Kernel {
	return &ccl.Kernel{
		Doc: "both ways around a ring", Cost: twoArmsCost, Run: twoArms(f),
		Supports: func(s ccl.Shape) error {
			if s.Ranks > 3 || s.Bytes/s.DType.Size()%2 != 0 {
				return errors.New("it is for two or three ranks and an even number of elements")
			}
			return nil
		},
	}
}
