package transport

import (
	"errors"

	"github.com/goccl/goccl/internal/text"
)

// RanksText returns the text of ranks, in ascending order, for a message: "rank 3",
// "ranks 0, 2", "ranks 0-7".
func RanksText(ranks []int) string { return text.Ranks(ranks) }

// Renumber returns an error of a group of members as one of the group that these are ranks of: a
// *PeerLostError, *TimeoutError or *AbortedError has the members in place of their ranks. Other
// errors are returned as they are.
func Renumber(err error, members []int) error {
	renumber := func(rank int) int {
		if rank >= 0 && rank < len(members) {
			return members[rank]
		}
		return rank
	}

	all := func(ranks []int) (of []int) {
		for _, rank := range ranks {
			of = append(of, renumber(rank))
		}
		return of
	}

	if lost, ok := errors.AsType[*PeerLostError](err); ok {
		return &PeerLostError{renumber(lost.Rank), lost.PID, all(lost.Left), lost.Host, lost.Hosts}
	}
	if late, ok := errors.AsType[*TimeoutError](err); ok {
		return &TimeoutError{all(late.Missing), all(late.Behind), all(late.Left), all(late.Waiting), renumber(late.By), late.Seq, late.After, late.Hosts}
	}
	if aborted, ok := errors.AsType[*AbortedError](err); ok {
		return &AbortedError{By: renumber(aborted.By), Cause: aborted.Cause}
	}
	return err
}
