package dist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/test/golden"
	"github.com/goccl/goccl/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reportFile makes the launcher name a report file for this process, and returns a function
// that reads it.
func reportFile(t *testing.T) (read func() *launchenv.Report) {
	file := filepath.Join(t.TempDir(), "rank-1")
	t.Setenv("GOCCL_ERROR_FILE", file)
	return func() *launchenv.Report {
		r, err := launchenv.ReadReport(file)
		require.NoError(t, err)
		return r
	}
}

// A worker that fails is reported to the launcher before its peers learn of it.
func TestWorkerReports(t *testing.T) {
	ours.set(t)
	read := reportFile(t)
	n := newNode(t)
	wait := n.others(t, func(c *ccl.Communicator, err error) {
		if err == nil {
			_, err = ccl.Recv(context.Background(), c, []int{0}, 1, 0) // without a message
		}
		aborted, ok := errors.AsType[*dist.AbortedError](err)
		if !assert.True(t, ok, "%v", err) {
			return
		}
		assert.Equal(t, 1, aborted.By)
		if r := read(); assert.NotNil(t, r, "the peers know, and the launcher does not") {
			assert.Equal(t, "the disk is full", r.Message)
		}
	})
	err := spawn(t, initialised(func(context.Context, int) error { return errors.New("the disk is full") }))
	wait()
	require.ErrorContains(t, err, "the disk is full")
	r := read()
	require.Equal(t, 1, r.Rank)
	require.Equal(t, os.Getpid(), r.PID)
	require.Equal(t, launchenv.FailedError, r.Kind)
	require.Empty(t, r.Cause)
	require.Empty(t, r.Frames)
	require.False(t, r.Time.IsZero())

	// A worker that succeeds removes the report.
	require.NoError(t, spawn(t, func(context.Context, int) error { return nil }))
	require.Nil(t, read())
	require.NotEmpty(t, os.Getenv("GOCCL_ERROR_FILE"))
	entries, err := os.ReadDir(filepath.Dir(os.Getenv("GOCCL_ERROR_FILE")))
	require.NoError(t, err)
	require.Empty(t, entries, "nothing else is left there")
}

func panics(v []int) int { return v[3] }

// The report of a panic has its message and the program's own functions.
func TestPanicReports(t *testing.T) {
	ours.set(t)
	read := reportFile(t)
	require.Error(t, spawn(t, func(context.Context, int) error {
		panics([]int{1, 2, 3})
		return nil
	}))
	r := read()
	require.NotNil(t, r)
	require.Equal(t, launchenv.FailedPanic, r.Kind)
	require.Equal(t, "panic: runtime error: index out of range [3] with length 3", r.Message)
	require.Len(t, r.Frames, 2, "%v", r.Frames)
	require.Equal(t, "github.com/goccl/goccl/dist_test.panics", r.Frames[0].Function)
	require.Equal(t, "report_test.go", filepath.Base(r.Frames[0].File))
	require.Positive(t, r.Frames[0].Line)
	require.Contains(t, r.Frames[1].Function, "TestPanicReports")
}

// A report has whether other ranks caused the failure, and which.
func TestConsequenceReports(t *testing.T) {
	texts := golden.Errors(t)
	in := func(err error) error {
		return &dist.CollectiveFailedError{Operation: "all_reduce", Rank: 1, Peer: -1, HideRank: true, Err: err}
	}
	failed, cancel := context.WithCancelCause(context.Background())
	cancel(&dist.RankError{Rank: 3, Err: &dist.CollectiveFailedError{
		Operation: "barrier", Rank: 1, HideRank: true, Group: "x", GlobalRanks: []int{2, 3}, Err: &dist.PeerLostError{Rank: 0},
	}})
	elsewhere := transport.ContextError(failed)
	for _, c := range []struct {
		name  string
		err   error
		how   failure.Kind
		ranks []int
	}{
		{"own", errors.New("no"), 0, nil},
		{"own, in a call", in(&dist.AbortedError{By: 1, Cause: errors.New("no")}), 0, nil},
		{"aborted", in(&dist.AbortedError{By: 2, Cause: errors.New("no")}), failure.Aborted, []int{2}},
		{"peer lost", in(&dist.PeerLostError{Rank: 0}), failure.PeerLost, []int{0}},
		{"all others lost", in(&dist.PeerLostError{Rank: 2, Left: []int{0, 2}}), failure.PeerLost, []int{0, 2}},
		{"timeout", in(&dist.TimeoutError{Missing: []int{2, 0}}), failure.Timeout, []int{0, 2}},
		{"canceled", in(context.Canceled), failure.Canceled, nil},
		{"rejected", in(&dist.MismatchError{Field: "arguments", Values: []ccl.MismatchValue{
			{Value: "rejected", Outcome: transport.OutcomeRejected, Ranks: []int{0}, Why: "no"},
			{Value: "accepted", Outcome: transport.OutcomeAccepted, Ranks: []int{1}},
			{Value: "rejected", Outcome: transport.OutcomeRejected, Ranks: []int{2}, Why: "not so"},
		}}), failure.Rejected, []int{0, 2}},
		{"mismatch", in(&dist.MismatchError{Field: "count", Values: []ccl.MismatchValue{
			{Value: "8", Ranks: []int{0, 1, 3}}, {Value: "7", Ranks: []int{2}},
		}}), failure.Mismatch, []int{2}},
		{"mismatch of three values", in(&dist.MismatchError{Field: "dtype", Values: []ccl.MismatchValue{
			{Value: "float32", Ranks: []int{3}}, {Value: "int32", Ranks: []int{0, 2}}, {Value: "int8", Ranks: []int{1}},
		}}), failure.Mismatch, []int{1, 3}},
		{"mismatch of halves", in(&dist.MismatchError{Field: "root", Values: []ccl.MismatchValue{
			{Value: "1", Ranks: []int{1, 2}}, {Value: "0", Ranks: []int{0, 3}},
		}}), failure.Mismatch, []int{0, 1, 2, 3}},
		{"of a group", &dist.CollectiveFailedError{Operation: "barrier", Rank: 0, Peer: 1, Group: "x", Err: &dist.PeerLostError{Rank: 1}},
			failure.PeerLost, nil},
		{"canceled since another group failed", in(elsewhere), failure.Canceled, nil},
		{"canceled as a peer was lost", in(errors.Join(&dist.PeerLostError{Rank: 2}, elsewhere)), failure.PeerLost, []int{2}},
		{"canceled, and a peer lost", errors.Join(context.Canceled, in(&dist.PeerLostError{Rank: 2})), failure.PeerLost, []int{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours.set(t)
			read := reportFile(t)
			require.Error(t, spawn(t, func(context.Context, int) error { return c.err }))
			r := read()
			require.NotNil(t, r)
			require.Equal(t, (&dist.RankError{Rank: 1, Err: c.err}).Error(), "rank 1: "+r.Message, "as Spawn's error has it")
			texts.Add(c.name, (&dist.RankError{Rank: 1, Err: c.err}))
			texts.Add(c.name+", reported", fmt.Errorf("%s, because %q of %v", r.Message, r.Cause.String(), r.Ranks))
			require.NotContains(t, r.Message, ", rank 1: ")
			require.Equal(t, c.how, r.Cause)
			require.Equal(t, c.ranks, r.Ranks)
		})
	}
}

// A failed call is reported before it returns, since the program may exit at once. The
// report has global ranks also for calls of a subgroup. The program's own error does not
// hide that its group has failed.
func TestCallReports(t *testing.T) {
	ours.set(t)
	read := reportFile(t)
	n := newNode(t)
	over := make(chan struct{})
	wait := n.others(t, func(c *ccl.Communicator, err error) {
		if !assert.NoError(t, err) {
			return
		}
		g, err := c.NewGroup(context.Background(), []int{1, 2})
		if assert.NoError(t, err) && g != nil {
			assert.NoError(t, g.Close())
		}
		<-over
	})
	err := spawn(t, initialised(func(_ context.Context, rank int) error {
		defer close(over)
		g, err := dist.NewGroup([]int{1, 2})
		if err != nil {
			return err
		}
		_, err = dist.Recv([]int{0}, 0, 0, dist.WithCallTimeout(time.Millisecond))
		if assert.Error(t, err) {
			r := read()
			assert.Equal(t, launchenv.FailedCall, r.Kind)
			assert.Equal(t, err.Error(), "ccl: "+r.Message)
			assert.Equal(t, failure.Stuck, r.Cause)
			assert.Equal(t, []int{0}, r.Ranks)
		}
		err = dist.Barrier(dist.WithGroup(g))
		if assert.Error(t, err) {
			r := read()
			assert.Equal(t, launchenv.FailedCall, r.Kind)
			assert.Equal(t, err.Error(), "ccl: "+r.Message)
			assert.Equal(t, failure.PeerLost, r.Cause)
			assert.Equal(t, []int{2}, r.Ranks, "rank 1 of the group")
			first := r.Time
			assert.Error(t, dist.Barrier(dist.WithGroup(g)))
			assert.True(t, first.Equal(read().Time), "the same failure was reported again")
		}
		return fmt.Errorf("step 7: %v", err) // as some programs do
	}))
	wait()
	require.ErrorContains(t, err, "step 7")
	r := read()
	require.Equal(t, launchenv.FailedError, r.Kind)
	require.Contains(t, r.Message, "step 7")
	require.Equal(t, failure.PeerLost, r.Cause)
	require.Equal(t, []int{2}, r.Ranks)

	require.NoError(t, spawn(t, func(context.Context, int) error { return nil }))
	require.Nil(t, read())
	require.Error(t, spawn(t, func(context.Context, int) error { return errors.New("no") }))
	require.Empty(t, read().Cause, "what was taken back is forgotten")
}

// A message that does not arrive does not fail the group. A program's error that contains
// the receive's is a consequence of it; any other error is the rank's own.
func TestMessageReports(t *testing.T) {
	ours.set(t)
	read := reportFile(t)
	recv := func() error {
		_, err := dist.Recv([]int{0}, 0, 0, dist.WithCallTimeout(time.Millisecond))
		return err
	}
	irecv := func() error {
		w, err := dist.Irecv([]int{0}, 0, 0, dist.WithCallTimeout(time.Millisecond))
		if err != nil {
			return err
		}
		return w.Wait(context.Background())
	}
	for _, c := range []struct {
		hides   bool
		receive func() error
	}{{true, recv}, {false, recv}, {true, irecv}, {false, irecv}} {
		n := newNode(t)
		over := make(chan struct{})
		var idle sync.WaitGroup
		idle.Add(2)
		wait := n.others(t, func(_ *ccl.Communicator, err error) {
			assert.NoError(t, err)
			idle.Done()
			<-over
		})
		require.Error(t, spawn(t, initialised(func(context.Context, int) error {
			defer close(over)
			idle.Wait() // a millisecond later they could still be in InitProcessGroup, and wait there for each other
			err := c.receive()
			assert.ErrorContains(t, err, read().Message)
			if c.hides {
				return fmt.Errorf("step 7: %v", err) // as some programs do
			}
			return errors.New("the disk is full")
		})))
		wait()
		if r := read(); c.hides {
			require.Equal(t, failure.Stuck, r.Cause)
			require.Equal(t, []int{0}, r.Ranks)
		} else {
			require.Empty(t, r.Cause)
		}
	}
}

// A failed InitProcessGroup is reported, and the report is removed if another succeeds.
func TestInitReports(t *testing.T) {
	ours.set(t)
	read := reportFile(t)
	require.Error(t, dist.InitProcessGroup("nccl", dist.WithTimeout(20*time.Millisecond)))
	r := read()
	require.NotNil(t, r)
	require.Equal(t, launchenv.FailedInit, r.Kind)
	require.Equal(t, 1, r.Rank)
	require.Contains(t, r.Message, `unknown backend "nccl"`)

	n := newNode(t)
	wait := n.others(t, func(*ccl.Communicator, error) {})
	require.NoError(t, dist.InitProcessGroup("ccl"))
	require.Nil(t, read())
	require.NoError(t, dist.DestroyProcessGroup())
	wait()

	require.Error(t, spawn(t, func(context.Context, int) error { return nil }, dist.WithRanks(7)))
	r = read()
	require.NotNil(t, r, "Spawn failed before the worker started")
	require.Equal(t, launchenv.FailedInit, r.Kind)
}

// torchrun gets its own report format.
func TestTorchReports(t *testing.T) {
	torchrun.set(t)
	file := filepath.Join(t.TempDir(), "error.json")
	t.Setenv("TORCHELASTIC_ERROR_FILE", file)
	require.Error(t, spawn(t, func(context.Context, int) error {
		panics([]int{1, 2, 3})
		return nil
	}))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var got struct {
		Message struct {
			Message   string
			ExtraInfo struct {
				Stack string `json:"py_callstack"`
				Time  int64  `json:"timestamp,string"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, "panic: runtime error: index out of range [3] with length 3", got.Message.Message)
	require.Contains(t, got.Message.ExtraInfo.Stack, got.Message.Message+"\n  github.com/goccl/goccl/dist_test.panics\n    ")
	require.Positive(t, got.Message.ExtraInfo.Time)
}

// Goroutine ranks report nothing: they have no launcher.
func TestOnlyLaunchedRanksReport(t *testing.T) {
	read := reportFile(t)
	require.Error(t, spawn(t, func(context.Context, int) error { return errors.New("no") }, dist.WithRanks(2)))
	require.Nil(t, read())
}
