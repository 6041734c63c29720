package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
)

// sent is what this process has reported to the launcher.
var sent struct {
	interleave.Mutex
	sentReports
}

// sentReports are the reports of a process.
type sentReports struct {
	hasSent bool // anything
	isFinal bool // a failure other than of a call; after a failed call the program may continue
	// The last failed call that other ranks caused.
	cause    failure.Kind
	ranks    []int
	awaited  *int
	endsAll  bool   // the call's group has failed
	callText string // of the call's error
}

// report tells the launcher why the rank failed. Errors of reporting are dropped: the
// caller gets err in any case.
func report(rank int, kind launchenv.FailKind, err error) {
	sent.Lock()
	defer sent.Unlock()
	r := newReport(rank, kind, err)
	// The program's own error may have the text of a call's error instead of the error, and the error
	// of a subgroup numbers ranks as the subgroup does.
	hidden := sent.endsAll || sent.callText != "" && strings.Contains(err.Error(), sent.callText)
	if r.Cause == 0 && hidden || r.Cause == sent.cause && len(r.Ranks) == 0 {
		r.Cause, r.Ranks, r.Awaited = sent.cause, sent.ranks, sent.awaited
	}
	sent.hasSent, sent.isFinal = true, true
	_ = r.Send(os.Getenv)
}

func newReport(rank int, kind launchenv.FailKind, err error) *launchenv.Report {
	r := &launchenv.Report{Version: 1, Rank: rank, PID: os.Getpid(), Time: time.Now(), Kind: kind, Message: err.Error()}
	r.Cause, r.Ranks = causeOf(rank, err)
	if failed, ok := errors.AsType[*CollectiveFailedError](err); ok && failed.Awaited >= 0 {
		awaited := failed.Awaited
		if failed.GlobalRanks != nil {
			awaited = failed.GlobalRanks[awaited]
		}
		r.Awaited = &awaited
	}

	if _, ok := errors.AsType[*InitializationFailedError](err); ok {
		r.Kind = launchenv.FailedInit // of the worker, too
	}
	_, r.IsConfiguration = errors.AsType[*ConfigError](err)
	if p, ok := errors.AsType[*PanicError](err); ok && p.Rank == rank {
		r.Kind, r.Message, r.Frames = launchenv.FailedPanic, fmt.Sprintf("panic: %v", p.Value), launchenv.PanicFrames(p.Stack)
	} else if k, ok := errors.AsType[*KernelPanicError](err); ok && r.Cause == 0 {
		r.Frames = launchenv.PanicFrames(k.Stack)
	} else if errors.Is(err, ErrGoexit) {
		r.Kind = launchenv.FailedGoexit
	}
	return r
}

// reportCall reports a failed call, since the program may exit without another call of
// this package. A failure is reported once.
func (r *rank) reportCall(c *ccl.Communicator, call *CallError, err *CollectiveFailedError) {
	if errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return // the rank itself ended the call
	}
	sent.Lock()
	defer sent.Unlock()
	report := newReport(r.number, launchenv.FailedCall, call)
	plain := *call
	plain.Async = call.Async && call.File != "" // otherwise its Work adds where the program waited
	report.Message = ccl.Reason(&plain)         // the launcher looks for it in what the program prints
	cause, ranks := report.Cause, report.Ranks
	isSame := sent.hasSent && cause == sent.cause && slices.Equal(ranks, sent.ranks)
	// A message that the program waits for may fail after one that it does not.
	if sent.isFinal || isSame && (report.Awaited == nil || sent.awaited != nil) {
		return
	}
	sent.sentReports = sentReports{
		hasSent: true, cause: cause, ranks: ranks, awaited: report.Awaited,
		endsAll: cause != 0 && err.Seq > 0, callText: report.Message,
	}
	_ = report.Send(os.Getenv)
}

// takeBack removes the report of a failure from which the program has recovered.
func takeBack() {
	sent.Lock()
	defer sent.Unlock()
	_ = launchenv.TakeBack(os.Getenv) // perhaps of an earlier process, which a shell has repeated
	sent.sentReports = sentReports{}
}

// reportWorker tells the launcher, if any, how the worker ended.
func (r *rank) reportWorker(err error) {
	switch {
	case r.job.launched == nil:
	case err == nil:
		takeBack()
		_ = launchenv.SendLeft(os.Getenv) // a launcher that does not learn it may suspect a pipe
	default:
		report(r.number, launchenv.FailedError, err)
	}
}

// reportInit tells the launcher, if any, that InitProcessGroup failed.
func reportInit(err error) {
	if l, unknown := launch(); unknown == nil && l != nil {
		report(l.Rank, launchenv.FailedInit, err)
	}
}

// causeOf returns how other ranks caused the error of a rank, and which: 0 if the failure is the
// rank's own. The rank itself may be among those of a mismatch, and of an error that ranks share.
//
// The ranks are global, and nil if the error numbers them as a subgroup does and it is not known
// which these are.
func causeOf(rank int, err error) (cause failure.Kind, ranks []int) {
	err = failure.WithoutContextCauses(err)
	group := interface{ JobRanks() []int }(nil) // of a group that could not be set up
	failed, inCall := errors.AsType[*CollectiveFailedError](err)
	switch {
	case inCall:
		cause, ranks = causeInGroup(failed.Rank, err) // group ranks, as all in err
		return cause, toJob(ranks, failed.GlobalRanks, failed.Group != "")
	case errors.As(err, &group):
		members := group.JobRanks()
		cause, ranks = causeInGroup(slices.Index(members, rank), err)
		return cause, toJob(ranks, members, true)
	}

	// Errors that leave the group intact have global ranks.
	object, _ := errors.AsType[*ObjectError](err)
	shared, _ := errors.AsType[*failure.SharedError](err)
	rejected, _ := errors.AsType[*agree.RejectedError](err)
	switch {
	case object != nil:
		return failure.Shared, object.ranks
	case shared != nil:
		return failure.Shared, shared.Ranks
	case rejected != nil:
		return failure.Shared, rejected.Ranks
	}

	cause, ranks = causeInGroup(rank, err)
	_, inInit := errors.AsType[*InitializationFailedError](err)
	if _, inCall := errors.AsType[*CallError](err); cause == failure.Mismatch && !inInit && !inCall {
		cause = failure.Unequal
	}
	return cause, toJob(ranks, nil, false)
}

// toJob returns the ranks of a group, ascending, as ranks of the job. members are those of the
// group, nil if the ranks are the same, or, for a subgroup, if they are not known.
func toJob(ranks, members []int, isSubgroup bool) (global []int) {
	if isSubgroup && members == nil {
		return nil
	}
	for _, r := range ranks {
		switch {
		case members == nil:
			global = append(global, r)
		case r >= 0 && r < len(members): // others come from damaged memory
			global = append(global, members[r])
		}
	}
	slices.Sort(global)
	return global
}

// causeInGroup is causeOf for an error with ranks of one group.
func causeInGroup(rank int, err error) (cause failure.Kind, ranks []int) {
	if aborted, ok := errors.AsType[*AbortedError](err); ok {
		if aborted.By == rank {
			return 0, nil
		}
		return failure.Aborted, []int{aborted.By}
	}
	if rejecting := ranksThat(err, transport.OutcomeRejected); rejecting != nil && !slices.Contains(rejecting, rank) {
		return failure.Rejected, rejecting
	}

	if lost, ok := errors.AsType[*PeerLostError](err); ok && lost.Rank != rank {
		if lost.Left != nil {
			return failure.PeerLost, lost.Left
		}
		return failure.PeerLost, []int{lost.Rank}
	}

	if late, ok := errors.AsType[*TimeoutError](err); ok {
		if len(late.Missing) > 0 {
			return failure.Timeout, late.Missing
		}
		return failure.Stuck, late.Behind
	}

	if differing := differingRanks(err); differing != nil {
		return failure.Mismatch, differing
	}
	if errors.Is(err, context.Canceled) {
		return failure.Canceled, nil
	}
	return 0, nil
}

// ranksThat returns the ranks that did that with the failed call. It returns nil if no rank
// rejected the arguments of the call.
func ranksThat(err error, outcome transport.Outcome) (ranks []int) {
	if m, ok := errors.AsType[*MismatchError](err); ok {
		for _, v := range m.Values {
			if v.Outcome == outcome { // OutcomeRejected stands once for each reason
				ranks = append(ranks, v.Ranks...)
			}
		}
	}
	return ranks
}

// differingRanks returns the ranks of a mismatch whose values are not those of most ranks; all of
// its ranks if no value is, and none if the error is no mismatch or some ranks rejected the call.
func differingRanks(err error) (ranks []int) {
	m, ok := errors.AsType[*MismatchError](err)
	if !ok || ranksThat(err, transport.OutcomeRejected) != nil {
		return nil
	}
	if m.Field == "buffers" { // the others have brought memory of their own
		return m.Values[0].Ranks
	}
	most, isUnique := 0, false
	for _, v := range m.Values {
		if len(v.Ranks) >= most {
			most, isUnique = len(v.Ranks), len(v.Ranks) > most
		}
	}

	for _, v := range m.Values {
		if len(v.Ranks) < most || !isUnique {
			ranks = append(ranks, v.Ranks...)
		}
	}
	return ranks
}
