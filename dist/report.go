package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
)

// sent is what this process has reported to the launcher.
var sent struct {
	sync.Mutex
	some bool // anything
	last bool // a failure other than of a call; after a failed call the program may continue
	// The last failed call that other ranks caused.
	because launchenv.Because
	ranks   []int
	awaited *int
	group   bool   // the call's group has failed
	text    string // of the error
}

// report tells the launcher why the rank failed. Errors of reporting are dropped: the
// caller gets err in any case.
func report(rank int, kind launchenv.FailKind, err error) {
	sent.Lock()
	defer sent.Unlock()
	r := newReport(rank, kind, err)
	// The program's own error may hide that a call has failed, and the error of a
	// subgroup numbers ranks as the subgroup does.
	hidden := sent.group || sent.text != "" && strings.Contains(err.Error(), sent.text)
	if r.Because == "" && hidden || r.Because == sent.because && len(r.Ranks) == 0 {
		r.Because, r.Ranks, r.Awaited = sent.because, sent.ranks, sent.awaited
	}
	sent.some, sent.last = true, true
	_ = r.Send(os.Getenv)
}

func newReport(rank int, kind launchenv.FailKind, err error) *launchenv.Report {
	r := &launchenv.Report{
		Version: 1, Rank: rank, PID: os.Getpid(), Time: time.Now(),
		Kind: kind, Message: err.Error(),
	}
	if kind == launchenv.FailedError { // as Spawn's error has it, which most programs print
		r.Message = (&RankError{rank, err}).withoutRank()
	}
	r.Because, r.Ranks = because(rank, err)
	if failed, ok := errors.AsType[*CollectiveFailedError](err); ok && failed.Awaited >= 0 {
		awaited := failed.Awaited
		if failed.GlobalRanks != nil {
			awaited = failed.GlobalRanks[awaited]
		}
		r.Awaited = &awaited
	}
	if p, ok := errors.AsType[*PanicError](err); ok && p.Rank == rank {
		r.Kind, r.Message, r.Frames = launchenv.FailedPanic, fmt.Sprintf("panic: %v", p.Value), launchenv.PanicFrames(p.Stack)
	} else if k, ok := errors.AsType[*KernelPanicError](err); ok && r.Because == "" {
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
	how, ranks := because(err.Rank, err.Err)
	for i := range ranks {
		ranks[i] = c.GlobalRank(ranks[i])
	}
	slices.Sort(ranks)
	sent.Lock()
	defer sent.Unlock()
	report := newReport(r.number, launchenv.FailedCall, call)
	report.Message = lasting(call) // the launcher looks for it in what the program prints
	again := sent.some && how == sent.because && slices.Equal(ranks, sent.ranks)
	// A message that the program waits for may fail after one that it does not.
	if sent.last || again && (report.Awaited == nil || sent.awaited != nil) {
		return
	}
	sent.some, sent.because, sent.ranks, sent.group, sent.text = true, how, ranks, how != "" && err.Seq > 0, report.Message
	report.Because, report.Ranks, sent.awaited = how, ranks, report.Awaited
	_ = report.Send(os.Getenv)
}

// lasting returns the part of a call's text that the error of its Work has as well, wherever the program waits for it.
func lasting(call *CallError) string {
	if !call.Async || call.File != "" {
		return call.Error()
	}
	without := *call
	without.Async = false // what its text ends with
	return without.Error()
}

// takeBack removes the report of a failure from which the program has recovered.
func takeBack() {
	sent.Lock()
	defer sent.Unlock()
	if sent.some {
		_ = launchenv.TakeBack(os.Getenv)
	}
	sent.some, sent.last, sent.because, sent.ranks, sent.awaited, sent.group, sent.text = false, false, "", nil, nil, false, ""
}

// reportWorker tells the launcher, if any, how the worker ended.
func (r *rank) reportWorker(err error) {
	switch {
	case r.job.launched == nil:
	case err == nil:
		takeBack()
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

// because returns how other ranks caused the error of a rank, and which: "" if the
// failure is the rank's own. The rank itself may be among those of a mismatch. ranks are
// global, and nil if the error numbers them as a subgroup does.
func because(rank int, err error) (how launchenv.Because, ranks []int) {
	if object, ok := errors.AsType[*ObjectError](err); ok {
		if object.Rank == rank {
			return "", nil
		}
		return launchenv.BecauseAborted, []int{object.Rank}
	}
	grouped := false
	if failed, ok := errors.AsType[*CollectiveFailedError](err); ok {
		rank, grouped = failed.Rank, failed.Group != "" // a group rank, as all ranks in err
	}
	defer func() {
		if grouped {
			ranks = nil
		}
		ranks = slices.Sorted(slices.Values(ranks))
	}()
	if aborted, ok := errors.AsType[*AbortedError](err); ok {
		if aborted.By == rank {
			return "", nil
		}
		return launchenv.BecauseAborted, []int{aborted.By}
	}
	if slices.Contains(ranksThat(err, transport.OutcomeAccepted), rank) || slices.Contains(ranksThat(err, transport.OutcomeAbsent), rank) {
		return launchenv.BecauseRefused, ranksThat(err, transport.OutcomeRejected)
	}
	if lost, ok := errors.AsType[*PeerLostError](err); ok && lost.Rank != rank {
		return launchenv.BecausePeerLost, []int{lost.Rank}
	}
	if late, ok := errors.AsType[*TimeoutError](err); ok {
		return launchenv.BecauseTimeout, slices.Concat(late.Missing, late.Behind)
	}
	if differ := differing(err); differ != nil {
		return launchenv.BecauseMismatch, differ
	}
	if errors.Is(err, context.Canceled) {
		return launchenv.BecauseCanceled, nil
	}
	return "", nil
}

// differing returns the ranks of a mismatch whose values are not those of most ranks; all of its ranks if no
// value is, and none if the error is no mismatch or only some ranks refused their arguments.
func differing(err error) (ranks []int) {
	m, ok := errors.AsType[*MismatchError](err)
	if !ok || m.Field == "arguments" {
		return nil
	}
	most, only := 0, false
	for _, v := range m.Values {
		if len(v.Ranks) >= most {
			most, only = len(v.Ranks), len(v.Ranks) > most
		}
	}
	for _, v := range m.Values {
		if len(v.Ranks) < most || !only {
			ranks = append(ranks, v.Ranks...)
		}
	}
	return ranks
}

// consequence reports whether another rank's failure caused the error of a rank.
func consequence(rank int, err error) bool {
	switch how, _ := because(rank, err); how {
	case launchenv.BecauseAborted, launchenv.BecauseRefused, launchenv.BecausePeerLost:
		return true
	}
	return false
}
