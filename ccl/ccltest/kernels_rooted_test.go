package ccltest

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// Right kernels, and mutants, of the collectives in which ranks do not all get the
// same.

const (
	usesInput   fault = "collects in its input what it passes on"
	twice       fault = "reduces one input twice"
	firstOnes   fault = "takes the first elements for every rank's block"
	ignoresOwn  fault = "leaves out its own input"
	addsOwn     fault = "adds its own input"
	fromTheEnd  fault = "begins at the last rank"
	writesFirst fault = "writes to the output of rank 0, which gets no result"
	dealsEvenly fault = "deals unequal blocks out evenly"
)

// chainReduce passes what has come together on, from the rank after the root to the
// root.
func chainReduce(f fault) *ccl.Kernel {
	return &ccl.Kernel{
		Doc:  "along a chain",
		Cost: func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Bytes} },
		Run: func(c *ccl.Call) error {
			root := c.Root()
			if f == rootZero {
				root = 0
			}
			ring := topology.NewRing(c.Size(), c.Rank())
			first, isRoot := ring.Prev == root, c.Rank() == root
			have := c.In()
			if !first {
				into := c.Out()
				switch {
				case !isRoot && f == usesInput:
					into = c.In()
				case !isRoot:
					into = c.Scratch(c.In().Len())
				}
				with := c.In()
				if f == ignoresOwn && isRoot {
					return c.Recv(ring.Prev, into)
				}
				if err := c.RecvReduce(ring.Prev, into, with); err != nil {
					return err
				}
				have = into
			}
			if isRoot {
				if f == twice {
					if err := c.RecvReduce(ring.Prev, c.Out(), c.Out()); err != nil {
						return err
					}
				}
				if f != noEpilogue {
					c.Epilogue(c.Out())
				}
				return nil
			}
			if err := c.Send(ring.Next, have); err != nil {
				return err
			}
			if f == twice && ring.Next == root {
				return c.Send(ring.Next, have)
			}
			return nil
		},
	}
}

// pairwiseReduce lets every rank exchange blocks with every other in turn.
func pairwiseReduce(f fault) *ccl.Kernel {
	return &ccl.Kernel{
		Doc:  "pair by pair",
		Cost: func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Bytes} },
		Run: func(c *ccl.Call) error {
			n := c.Size()
			block := c.InBlock
			switch f {
			case dealsEvenly:
				block = func(rank int) ccl.Buffer { return c.In().Block(rank, n) }
			case firstOnes:
				block = func(rank int) ccl.Buffer { return c.In().Slice(0, c.BlockLen(rank)) }
			}
			with := block(c.Rank())
			for s := 1; s < n; s++ {
				to, from := (c.Rank()+s)%n, (c.Rank()+n-s)%n
				var err error
				if f == ignoresOwn && s == 1 {
					err = c.SendRecv(to, block(to), from, c.Out())
				} else {
					err = c.SendRecvReduce(to, block(to), from, c.Out(), with)
				}
				if err != nil {
					return err
				}
				with = c.Out()
			}
			if f != noEpilogue {
				c.Epilogue(c.Out())
			}
			return nil
		},
	}
}

// linearGather sends from all ranks to the root.
func linearGather(f fault) *ccl.Kernel {
	return &ccl.Kernel{
		Doc:  "straight to the root",
		Cost: func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: 1, Bytes: (s.Ranks - 1) * s.Bytes} },
		Run: func(c *ccl.Call) error {
			root := c.Root()
			if f == rootZero {
				root = 0
			}
			if c.Rank() != root {
				return c.Send(root, c.In())
			}
			at := 0
			for r := range c.Size() {
				place := c.OutBlock(r)
				if f == packs {
					place = c.Out().Slice(at, at+place.Len())
					at += place.Len()
				}
				var err error
				switch {
				case r != root:
					err = c.Recv(r, place)
				case f != forgetsOwn:
					err = c.Copy(place, c.In())
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// linearScatter sends from the root to all ranks.
func linearScatter(f fault) *ccl.Kernel {
	return &ccl.Kernel{
		Doc:  "straight from the root",
		Cost: func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Total} },
		Run: func(c *ccl.Call) error {
			root := c.Root()
			if f == rootZero {
				root = 0
			}
			if c.Rank() != root {
				return c.Recv(root, c.Out())
			}
			for r := range c.Size() {
				block := c.InBlock(r)
				if f == firstOnes {
					block = c.In().Slice(0, block.Len())
				}
				var err error
				switch {
				case r != root:
					err = c.Send(r, block)
				case f != forgetsOwn:
					err = c.Copy(c.Out(), block)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// pairwiseExchange is an all-to-all in which every rank exchanges blocks with every other in
// turn.
func pairwiseExchange(f fault) *ccl.Kernel {
	return &ccl.Kernel{
		Doc:  "pair by pair",
		Cost: func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Total} },
		Run: func(c *ccl.Call) error {
			n := c.Size()
			place := func(from int) ccl.Buffer {
				b := c.OutBlock(from)
				if f != packs {
					return b
				}
				at := 0
				for r := range from {
					at += c.OutBlock(r).Len()
				}
				return c.Out().Slice(at, at+b.Len())
			}
			block := c.InBlock
			if f == firstOnes {
				block = func(to int) ccl.Buffer { return c.In().Slice(0, c.InBlock(to).Len()) }
			}
			if f != forgetsOwn {
				if err := c.Copy(place(c.Rank()), block(c.Rank())); err != nil {
					return err
				}
			}
			for s := 1; s < n; s++ {
				to, from := (c.Rank()+s)%n, (c.Rank()+n-s)%n
				if f == wrongBlock {
					to, from = from, to
				}
				if err := c.SendRecv((c.Rank()+s)%n, block(to), (c.Rank()+n-s)%n, place(from)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// chainScan passes what has come together on from rank to rank.
func chainScan(f fault) *ccl.Kernel {
	return &ccl.Kernel{
		Doc:  "along a chain",
		Cost: func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: s.Ranks - 1, Bytes: (s.Ranks - 1) * s.Bytes} },
		Run: func(c *ccl.Call) error {
			first, last, step := 0, c.Size()-1, 1
			if f == fromTheEnd {
				first, last, step = last, first, -1
			}
			var err error
			switch {
			case c.Rank() == first:
				err = c.Copy(c.Out(), c.In())
			case f == ignoresOwn && c.Rank() == last:
				err = c.Recv(c.Rank()-step, c.Out())
			default:
				err = c.RecvReduce(c.Rank()-step, c.Out(), c.In())
			}
			if err != nil || c.Rank() == last {
				return err
			}
			return c.Send(c.Rank()+step, c.Out())
		},
	}
}

// chainExScan does so twice, since the ranks in between need what came before them
// with and without their own.
func chainExScan(f fault) *ccl.Kernel {
	return &ccl.Kernel{
		Doc: "along a chain, twice",
		Cost: func(s ccl.Shape) ccl.Cost {
			return ccl.Cost{Steps: 2*s.Ranks - 3, Bytes: (2*s.Ranks - 3) * s.Bytes}
		},
		Run: func(c *ccl.Call) error {
			rank, last := c.Rank(), c.Size()-1
			have := c.In()
			if rank == 0 && f == writesFirst {
				clear(c.Out().Bytes())
			}
			if 0 < rank && rank < last {
				have = c.Scratch(c.In().Len())
				if err := c.RecvReduce(rank-1, have, c.In()); err != nil {
					return err
				}
			}
			if rank > 0 {
				err := error(nil)
				if f == addsOwn && rank == last {
					err = c.RecvReduce(rank-1, c.Out(), c.In())
				} else {
					err = c.Recv(rank-1, c.Out())
				}
				if err != nil {
					return err
				}
			}
			for range min(2, last-rank) {
				if err := c.Send(rank+1, have); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// rootedMutants are the classic faults of these collectives.
func rootedMutants() []mutant {
	reduce, reduceScatter, gather, scatter := ccl.CollReduce, ccl.CollReduceScatter, ccl.CollGather, ccl.CollScatter
	all, scan, exscan := ccl.CollAllToAll, ccl.CollScan, ccl.CollExScan
	return []mutant{
		{"reduce: " + string(rootZero), "Completes", reduce, chainReduce(rootZero), hangs},
		{"reduce: " + string(noEpilogue), "Result", reduce, chainReduce(noEpilogue), nil},
		{"reduce: " + string(ignoresOwn), "Result", reduce, chainReduce(ignoresOwn), nil},
		{"reduce: " + string(twice), "Result", reduce, chainReduce(twice), nil},
		{"reduce: " + string(usesInput), "Guards", reduce, chainReduce(usesInput), nil},
		{"reduce_scatter: " + string(dealsEvenly), "Completes", reduceScatter, pairwiseReduce(dealsEvenly), hangs},
		{"reduce_scatter: " + string(firstOnes), "Result", reduceScatter, pairwiseReduce(firstOnes), nil},
		{"reduce_scatter: " + string(ignoresOwn), "Result", reduceScatter, pairwiseReduce(ignoresOwn), nil},
		{"reduce_scatter: " + string(noEpilogue), "Result", reduceScatter, pairwiseReduce(noEpilogue), nil},
		{"gather: " + string(rootZero), "Completes", gather, linearGather(rootZero), hangs},
		{"gather: " + string(forgetsOwn), "Result", gather, linearGather(forgetsOwn), nil},
		{"gather: " + string(packs), "Guards", gather, linearGather(packs), nil},
		{"scatter: " + string(rootZero), "Completes", scatter, linearScatter(rootZero), hangs},
		{"scatter: " + string(forgetsOwn), "Result", scatter, linearScatter(forgetsOwn), nil},
		{"scatter: " + string(firstOnes), "Result", scatter, linearScatter(firstOnes), nil},
		{"all_to_all: " + string(wrongBlock), "Messages", all, pairwiseExchange(wrongBlock), hangs},
		{"all_to_all: " + string(forgetsOwn), "Result", all, pairwiseExchange(forgetsOwn), nil},
		{"all_to_all: " + string(firstOnes), "Result", all, pairwiseExchange(firstOnes), nil},
		{"all_to_all: " + string(packs), "Guards", all, pairwiseExchange(packs), nil},
		{"scan: " + string(ignoresOwn), "Result", scan, chainScan(ignoresOwn), nil},
		{"scan: " + string(fromTheEnd), "Result", scan, chainScan(fromTheEnd), nil},
		{"exscan: " + string(addsOwn), "Result", exscan, chainExScan(addsOwn), nil},
		{"exscan: " + string(writesFirst), "Guards", exscan, chainExScan(writesFirst), nil},
	}
}
