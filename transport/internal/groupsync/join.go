package groupsync

import (
	"errors"
	"fmt"
	"os"

	"github.com/goccl/goccl/transport"
)

// JoinFailure returns the failure of a rank that gives up joining a group because of err. If err
// is another rank's reason, the failure is that rank's.
func JoinFailure(rank int, err error) *transport.Failure {
	f := &transport.Failure{Kind: transport.FailureAborted, By: rank, Text: fmt.Sprintf("pid %d cannot join: %v", os.Getpid(), err)}
	if aborted, ok := errors.AsType[*transport.AbortedError](err); ok && aborted.Cause != nil {
		f.By, f.Text = aborted.By, aborted.Cause.Error()
	}
	if lost, ok := errors.AsType[*transport.PeerLostError](err); ok {
		f.Kind, f.Ranks, f.PID = transport.FailurePeerLost, []int{lost.Rank}, lost.PID
	}

	if late, ok := errors.AsType[*transport.TimeoutError](err); ok {
		f.Kind, f.By, f.Ranks, f.After = transport.FailureTimeout, late.By, late.Missing, late.After
		if len(late.Missing) == 0 {
			f.Kind, f.Ranks = transport.FailureStuck, late.Behind
		}
	}
	return f
}

// JoinError returns the error of ranks that join a group, for a failure that another of them has
// reported.
func JoinError(f *transport.Failure) error {
	switch {
	case f.Kind == transport.FailurePeerLost && len(f.Ranks) > 0:
		return &transport.PeerLostError{Rank: f.Ranks[0], PID: f.PID}
	case f.Kind == transport.FailureTimeout:
		return &transport.TimeoutError{Missing: f.Ranks, By: f.By, After: f.After}
	case f.Kind == transport.FailureStuck:
		return &transport.TimeoutError{Behind: f.Ranks, By: f.By, After: f.After}
	default:
		return &transport.AbortedError{By: f.By, Cause: errors.New(f.Text)}
	}
}
