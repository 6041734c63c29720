package ccltest

import (
	"errors"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
)

// The kernels of the tests, as an author would fuzz them.
func FuzzRightKernels(f *testing.F) {
	Fuzz(f, &ccl.Algorithm{
		Name: "right", Doc: "an algorithm of the tests",
		Params: func() any { return &chunkParams{Chunk: 1 << 20} },
		Kernels: map[ccl.Collective]*ccl.Kernel{
			ccl.CollAllReduce: viewReduceKernel(none),
			ccl.CollAllGather: ringGatherKernel(none),
			ccl.CollBroadcast: chunkChainKernel(none),
		},
	}, RankOrdered(), Params("chunk: 16"))
}

// A fault at one size and number of ranks, which no check happens to try, is found
// by the input that stands for it and by no other.
func TestFuzzFindsOddSize(t *testing.T) {
	k := after(func(c *ccl.Call, err error) error {
		if c.Size() == 6 && c.Out().Len() == 13 {
			c.Out().Bytes()[0] ^= 1
		}
		return err
	})
	targets := []*subject{subjectOf(ccl.CollAllReduce, k)}
	for medium := range uint8(4) {
		for delays := range uint64(2) {
			in := input{medium: medium, ranks: 5, count: 13, delays: delays}
			broken, err := in.try(targets)
			if err == nil || broken != checkNamed("Result") {
				t.Errorf("medium %d: %v: %v", medium, broken, err)
			} else if !strings.Contains(err.Error(), "6 ranks: all_reduce of float32, sum of 13 elements: rank 0: element 0 is") {
				t.Errorf("medium %d: the error is %v", medium, err)
			}
			for _, right := range []input{{medium: medium, ranks: 4, count: 13, delays: delays}, {medium: medium, ranks: 5, count: 12, delays: delays}} {
				if _, err := right.try(targets); err != nil {
					t.Errorf("medium %d: %v", medium, err)
				}
			}
		}
	}
}

// One input breaks each of the rules that Fuzz holds kernels to.
func TestFuzzNamesRule(t *testing.T) {
	costly := ringReduceKernel(none)
	costly.Cost = viewReduceCost
	for _, test := range []struct {
		check  string
		kernel *ccl.Kernel
		in     input
	}{
		{"Messages", ringReduceKernel(early), input{ranks: 2, count: 5}},
		{"Completes", doublingReduceKernel(undeclared), input{ranks: 2, count: 5}},
		{"Result", ringReduceKernel(oneStep), input{ranks: 2, count: 5}},
		{"Guards", after(func(c *ccl.Call, err error) error {
			c.In().Bytes()[0]++
			return err
		}), input{ranks: 2, count: 5}},
		{"SameBits", byHandKernel((*ccl.Call).Rank, sumOrMin), input{ranks: 4, count: 12, layout: 128}},
		{"Cost", costly, input{ranks: 2, count: 5}},
	} {
		broken, err := test.in.try([]*subject{subjectOf(ccl.CollAllReduce, test.kernel)})
		if err == nil || broken != checkNamed(test.check) {
			t.Errorf("instead of %s: %v: %v", test.check, broken, err)
		}
	}
	in := input{ranks: 2, count: 5}
	_, err := in.try([]*subject{subjectOf(ccl.CollAllReduce, doublingReduceKernel(none))})
	if _, skip := errors.AsType[*skipped](err); !skip {
		t.Errorf("a call that is not supported: %v", err)
	}
}

// The seeds try all media, all numbers of ranks, all types and operations, and few
// of them are cut to the same call.
func TestSeeds(t *testing.T) {
	media, ranks, dtypes, ops, counts := map[string]bool{}, map[int]bool{}, map[ccl.DType]bool{}, map[ccl.Op]bool{}, map[int]bool{}
	for _, in := range seeds(1) {
		_, w, n, j := in.decode([]*subject{subjectOf(ccl.CollAllReduce, ringReduceKernel(none))})
		media[w.name], ranks[n], dtypes[j.DType], ops[j.Op], counts[j.Count] = true, true, true, true, true
	}
	if len(media) != 8 || len(ranks) != mostRanks || len(dtypes) != len(ccl.DTypes()) || len(ops) < len(ccl.Ops()) || len(counts) < 20 {
		t.Errorf("%v\n%v\n%v\n%v\n%v", media, ranks, dtypes, ops, counts)
	}
}
