//go:build interleave

package seeds

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/test/calls"
	"github.com/goccl/goccl/transport/local"
)

// orders is how many orders a program runs in.
const orders = 4

// runOrders runs a program of calls whose results are rounded, in several orders, on several numbers
// of processors, with ranks that poll or park: the bits of all results are the same.
func runOrders(t *testing.T, seed uint64, o interleave.Options) (all interleave.Result, err error) {
	var first *job
	for i := range orders {
		j := newRoundingJob(seed)
		j.waiting = []local.Waiting{local.Poll, local.Park}[i%2]
		interleave.SetProcessors(1 + (int(seed)+3*i)%8)
		o.Patience = patience
		o.Seed = calls.Mix(seed + uint64(i)<<32)

		r, err := j.run(t, o)
		all.Steps += r.Steps
		all.Hash = chain(all.Hash, r.Hash)
		if all.Finding = r.Finding; r.Finding != nil || err != nil {
			return all, err
		}
		if first == nil {
			first = j
		}
		for k, e := range j.events {
			if err := e.compare(first.events[k]); err != nil {
				return all, fmt.Errorf("order %d: %w", i, err)
			}
		}
	}
	return all, nil
}

// compare returns an error if the bits of the results are not those of another order, or, of an
// all-reduce, differ between ranks.
func (e *event) compare(other *event) error {
	if !reflect.DeepEqual(e.call.Results, other.call.Results) {
		return fmt.Errorf("%v: the results have bits %x in one order and %x in another", e, other.call.Results, e.call.Results)
	}
	for _, bits := range e.call.Results {
		if e.call.Coll == ccl.CollAllReduce && !slices.Equal(bits, e.call.Results[0]) {
			return fmt.Errorf("%v: the results of ranks have bits %x", e, e.call.Results)
		}
	}
	return nil
}

// newRoundingJob draws a program of calls, in which nothing goes wrong. Where the numbers can be
// such that a result depends on the order of a reduction, they are.
func newRoundingJob(seed uint64) *job {
	j := newJob(seed, 24)
	j.fault = mishap{way: wayNothing}
	j.events = slices.DeleteFunc(j.events, func(e *event) bool { return e.what != call || e.group.number > 0 })
	for _, e := range j.events {
		c := e.call
		if isSum := slices.Contains([]ccl.Op{ccl.Sum, ccl.Avg, ccl.Product, calls.Premul}, c.Op); isSum && calls.KindOf(c.DType).IsFloat {
			c.Numbers = calls.Rough
		}
		if c.Op == trapOp {
			c.Op = ccl.Sum
		}
		j.setCall(e, c.Clone(), strings.TrimPrefix(e.algorithm, "trap-"))
		e.call.Results = make([][]uint64, c.Ranks)
	}
	return j
}
