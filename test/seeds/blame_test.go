//go:build interleave

package seeds

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/transport"
)

// checkBlame checks that the error of each rank leads to a cause: it names a rank with a cause of its
// own, or one whose error leads to such a rank. Ranks that name only one another do not.
func checkBlame(errs []error, hasCause func(rank int) bool) error {
	isExplained := make([]bool, len(errs))
	for rank := range errs {
		isExplained[rank] = hasCause(rank)
	}
	for range errs {
		for rank, err := range errs {
			for _, named := range namedRanks(err) {
				if named != rank && named >= 0 && named < len(errs) && isExplained[named] {
					isExplained[rank] = true
				}
			}
		}
	}
	for rank, err := range errs {
		if err != nil && !isExplained[rank] {
			return fmt.Errorf("the error of rank %d names ranks %d, which leads to no cause: %w\nerrors of all ranks: %q", rank, namedRanks(err), err, errs)
		}
	}
	return nil
}

// namedRanks returns the ranks of the job that an error names.
func namedRanks(err error) (ranks []int) {
	if aborted, ok := errors.AsType[*dist.AbortedError](err); ok {
		ranks = []int{aborted.By} // and not those of its cause, which may be an error of another group
	} else {
		ranks = blamedRanks(err)
	}

	var members []int // of the group whose ranks these are
	group := interface{ JobRanks() []int }(nil)
	if failed, ok := errors.AsType[*dist.CollectiveFailedError](err); ok {
		members = failed.GlobalRanks
	} else if errors.As(err, &group) {
		members = group.JobRanks()
	}
	for i, r := range ranks {
		if members != nil {
			ranks[i] = members[r]
		}
	}
	return ranks
}

// blamedRanks returns the ranks that are lost, late or reject, with the numbers of the group.
func blamedRanks(err error) (ranks []int) {
	if lost, ok := errors.AsType[*dist.PeerLostError](err); ok {
		ranks = append(ranks, lost.Rank)
	}
	if late, ok := errors.AsType[*dist.TimeoutError](err); ok {
		ranks = append(ranks, slices.Concat(late.Missing, late.Behind)...)
	}
	if differ, ok := errors.AsType[*ccl.MismatchError](err); ok {
		for _, v := range differ.Values {
			if v.Outcome == transport.OutcomeRejected {
				ranks = append(ranks, v.Ranks...)
			}
		}
	}
	return ranks
}
