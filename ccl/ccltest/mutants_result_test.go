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
	long := func(s *subject) { s.short = false }
	return []mutant{
		{string(wrongBlock), "Result", reduce, ringReduceKernel(wrongBlock), nil},
		{string(oneStep), "Result", reduce, ringReduceKernel(oneStep), nil},
		{string(noEpilogue), "Result", reduce, ringReduceKernel(noEpilogue), nil},
		{string(twoEpilogues), "Result", reduce, ringReduceKernel(twoEpilogues), nil},
		{string(ownOutput), "Result", reduce, ringReduceKernel(ownOutput), nil},
		{string(heldOutput), "Result", reduce, ringReduceKernel(heldOutput), nil},
		{string(shortCount), "Result", reduce, ringReduceKernel(shortCount), long},
		{string(withoutPeers), "Result", reduce, doublingReduceKernel(withoutPeers), nil},
		{string(rootZero), "Result", broadcast, chainKernel(rootZero), nil},
		{string(lastElement), "Result", broadcast, chunkChainKernel(lastElement), chunked},
		{string(swaps) + ", of the same length", "Result", broadcast, inPartsKernel(3, 2, swaps), nil},
		{string(oneForTheOther), "Result", broadcast, twoArmsKernel(oneForTheOther), nil},
		{string(forgetsOwn), "Result", gather, ringGatherKernel(forgetsOwn), nil},
		{"sums whatever the operation", "Result", reduce, byHandKernel(inRankOrder, onlySum), nil},
		{"overlooks NaN", "Result", reduce, byHandKernel(inRankOrder, lessThan), nil},
		{"adds up halves of a mean by itself, though it is AnyRunner", "Result", reduce, sumsHalves(), nil},
		{"takes scratch memory for zeroed", "Result", reduce, byHand(sumsInScratch), nil},
		{string(neighbours), "Result", reduce, sharing(viewReduceKernel(neighbours)), nil},
		{"is declared to reduce in rank order, but does not", "Result", reduce, ringReduceKernel(none),
			func(s *subject) { s.rankOrdered = true }},
		// This one keeps state, but it need not wait for State: its state is wrong in
		// the very next call.
		{"reads the buffer of a call before", "Result", broadcast, remembering(), nil},

		{string(firstPiece), "Pieces", reduce, viewReduceKernel(firstPiece), nil},
	}
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
