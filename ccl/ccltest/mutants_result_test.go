package ccltest

import (
	"runtime"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl"
)

// resultMutants compute something else, in general or at some sizes.
func resultMutants() []mutant {
	reduce, gather, broadcast := ccl.CollAllReduce, ccl.CollAllGather, ccl.CollBroadcast
	const check = "Result"
	faulty := func(coll ccl.Collective, f fault, kernel func(fault) *ccl.Kernel) mutant {
		return mutant{name: string(f), check: check, coll: coll, kernel: kernel(f)}
	}
	mutants := []mutant{
		faulty(reduce, wrongBlock, ringReduceKernel),
		faulty(reduce, oneStep, ringReduceKernel),
		faulty(reduce, noEpilogue, ringReduceKernel),
		faulty(reduce, twoEpilogues, ringReduceKernel),
		faulty(reduce, ownOutput, ringReduceKernel),
		faulty(reduce, heldOutput, ringReduceKernel),
		faulty(reduce, withoutPeers, doublingReduceKernel),
		faulty(broadcast, rootZero, chainKernel),
		faulty(broadcast, oneForTheOther, twoArmsKernel),
		faulty(gather, forgetsOwn, ringGatherKernel),
		faulty(reduce, neighbours, func(f fault) *ccl.Kernel { return sharing(viewReduceKernel(f)) }),
		faulty(reduce, firstPiece, viewReduceKernel),
	}
	mutants[len(mutants)-1].check = "Pieces"
	return append(mutants, []mutant{{
		name: string(shortCount), check: check, coll: reduce, kernel: ringReduceKernel(shortCount),
		tweak: func(s *subject) { s.short = false },
	}, {
		name: string(lastElement), check: check, coll: broadcast, kernel: chunkChainKernel(lastElement), tweak: chunked,
	}, {
		name: string(swaps) + ", of the same length", check: check, coll: broadcast, kernel: inPartsKernel(3, 2, swaps),
	}, {
		name: "sums whatever the operation", check: check, coll: reduce, kernel: byHandKernel(inRankOrder, onlySum),
	}, {
		name: "overlooks NaN", check: check, coll: reduce, kernel: byHandKernel(inRankOrder, lessThan),
	}, {
		name: "adds up halves of a mean by itself, though it is AnyRunner", check: check, coll: reduce, kernel: sumsHalves(),
	}, {
		name: "takes scratch memory for zeroed", check: check, coll: reduce, kernel: byHand(sumsInScratch),
	}, {
		name: "is declared to reduce in rank order, but does not", check: check, coll: reduce, kernel: ringReduceKernel(none),
		tweak: func(s *subject) { s.rankOrdered = true },
	}, {
		// This one keeps state, but it need not wait for State: its state is wrong in the very next
		// call.
		name: "reads the buffer of a call before", check: check, coll: broadcast, kernel: remembering(),
	}}...)
}

// remembering sends from the first buffer that a rank had in a call of the shape.
func remembering() *ccl.Kernel {
	type key struct {
		rank, count int
		dtype       ccl.DType
	}
	var mu sync.Mutex
	first := make(map[key]ccl.Buffer)
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Rank() != c.Root() {
			return chain(none)(c)
		}
		mu.Lock()
		defer mu.Unlock()
		id := key{c.Rank(), c.Out().Len(), c.Shape().DType}
		if _, ok := first[id]; !ok {
			first[id] = c.Out()
		}
		return c.Send((c.Rank()+1)%c.Size(), first[id])
	}
	return k
}

// sharing declares that a kernel reads its own part of others' inputs only.
func sharing(k *ccl.Kernel) *ccl.Kernel {
	k.ReadsOwnPart = true
	return k
}

// orderMutants depend on what happens first.
func orderMutants() []mutant {
	return []mutant{
		{"assumes that the root comes first", "Jitter", ccl.CollBroadcast, hasty(), nil},
		{"reduces its own input first", "SameBits", ccl.CollAllReduce,
			byHandKernel((*ccl.Call).Rank, sumOrMin), nil},
		{"reduces in an order that changes from run to run", "SameBits", ccl.CollAllReduce,
			byHandKernel(anyRank, sumOrMin), nil},
		{"reduces in an order that depends on GOMAXPROCS", "SameBits", ccl.CollAllReduce,
			byHandKernel(func(*ccl.Call) int { return runtime.GOMAXPROCS(0) }, sumOrMin), nil},
		{"reduces in another order in place", "SameBits", ccl.CollAllReduce,
			byHandKernel(func(c *ccl.Call) int {
				if inPlaceCall(c) {
					return 1
				}
				return 0
			}, sumOrMin), nil},
	}
}

// anyRank is what comes first out of a map.
func anyRank(c *ccl.Call) (first int) {
	ranks := make(map[int]bool)
	for r := range c.Size() {
		ranks[r] = true
	}
	for first = range ranks {
		break
	}
	return first
}

func inPlaceCall(c *ccl.Call) bool {
	return c.In().Len() > 0 && &c.In().Bytes()[0] == &c.Out().Bytes()[0]
}

// blackboard is where kernels that ought to send messages leave their data.
type blackboard struct {
	mu   sync.Mutex
	data []byte
}

func (b *blackboard) write(data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data[:0], data...)
}

func (b *blackboard) read(data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	copy(data, b.data)
}

// hasty gives the root a head start instead of waiting for it.
func hasty() *ccl.Kernel {
	var board blackboard
	k := chainKernel(none)
	k.Run = func(c *ccl.Call) error {
		if c.Rank() == c.Root() {
			board.write(c.Out().Bytes())
			return nil
		}
		for start := time.Now(); time.Since(start) < 20*time.Microsecond; {
			runtime.Gosched()
		}
		board.read(c.Out().Bytes())
		return nil
	}
	return k
}
