package ccltest

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl/test/calls"
)

// inputsText says which inputs are missing in the result of a call that was wrong, and which are
// there twice. It makes the call again, once with zeros and once for each rank with inputs of that
// rank alone: small numbers that count its elements. A reduction becomes a sum. If the call has
// less than two elements for each rank, it makes one that has before that, which shows more.
func (s *subject) inputsText(w medium, n int, seed uint64, found *calls.WrongError) string {
	if found.IsKnown {
		return ""
	}
	tried := []*calls.Call{found.Call}
	if longer := found.Call.Longer(); longer != nil {
		tried = []*calls.Call{longer, found.Call}
	}

	right := false
	for _, j := range tried {
		results, err := s.loneResults(w, n, seed, j)
		if err != nil {
			continue
		}
		lines := calls.FaultsText(found.Rank, results)
		right = len(lines) == 0
		if more := len(lines) - mostFaults; more > 0 {
			lines = append(lines[:mostFaults:mostFaults], fmt.Sprintf("... %d more", more))
		}

		if !right {
			return fmt.Sprintf("\ninputs, in %v:\n  %s", j.Alone(0), strings.Join(lines, "\n  "))
		}
	}
	switch {
	case !right:
		return ""
	case found.Call.Coll.Traits().Reduces:
		return "\ninputs: in a sum of the same lengths each arrives once; look at the operation, its order, earlier calls and timing"
	}
	return "\ninputs: in the same call alone each arrives where it should; look at earlier calls and timing"
}

// mostFaults is the number of lines about inputs in a failure.
const mostFaults = 6

// mostArrivals bounds the elements that loneResults returns.
const mostArrivals = 4 << 20

// loneResults makes a job with the inputs of no rank, and then with those of each alone. Its result
// has an entry for each of these jobs, and in it one for each rank.
func (s *subject) loneResults(w medium, n int, seed uint64, of *calls.Call) ([][]*calls.Arrivals, error) {
	results := make([][]*calls.Arrivals, n+1)
	if of.Shape().Total/of.DType.Size() > mostArrivals/n/(n+1) {
		return nil, &skipped{why: "the result is too long"}
	}
	var jobs []*calls.Call
	for k := range results {
		results[k] = make([]*calls.Arrivals, n)
		jobs = append(jobs, of.Alone(k-1))
	}

	err := s.with(w, n, probe{seed: seed}, func(g *group) error {
		if can, err := g.supported(jobs); err != nil || len(can) < len(jobs) {
			return &skipped{why: "the kernel does not support it", cause: err}
		}

		return g.each(func(r *rank) error {
			for k, j := range jobs {
				a := r.attempt(j)
				if err := do(a, j, func(attempt) error { return nil }); err != nil {
					return err
				}
				results[k][r.me] = a.Arrived()
			}
			return nil
		})
	})
	return results, err
}
