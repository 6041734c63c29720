package ccl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// recorded returns communicators on the endpoints, with options.
func recorded(t *testing.T, eps []transport.Endpoint, opts ...ccl.Option) []*ccl.Communicator {
	t.Helper()
	all := make([]*ccl.Communicator, len(eps))
	errs := make(chan error, len(eps))
	for rank, ep := range eps {
		go func() {
			c, err := ccl.New(bg, ep, opts...)
			all[rank] = c
			errs <- err
		}()
	}
	for range eps {
		require.NoError(t, <-errs)
	}
	t.Cleanup(func() {
		for _, c := range all {
			_ = c.Close()
		}
	})
	return all
}

// onAll runs f on all ranks and returns their errors.
func onAll(all []*ccl.Communicator, f func(c *ccl.Communicator) error) []error {
	errs := make([]error, len(all))
	done := make(chan struct{})
	for i, c := range all {
		go func() {
			errs[i] = f(c)
			done <- struct{}{}
		}()
	}
	for range all {
		<-done
	}
	return errs
}

func load(t *testing.T, dir string) []*flight.Document {
	t.Helper()
	documents, _, err := flight.Load(dir)
	require.NoError(t, err)
	return documents
}

// A call that fails writes a file for each rank, with the last calls of all.
func TestFlightOfAMismatch(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "flight")
	all := recorded(t, local.New(3), ccl.WithFlight(dir))
	errs := onAll(all, func(c *ccl.Communicator) error {
		x := make([]float32, 8+c.Rank()/2)
		if err := ccl.Broadcast(bg, c, x[:8], 2, ccl.WithLabel("weights")); err != nil {
			return err
		}
		return ccl.AllReduce(bg, c, x, x, ccl.Max, ccl.WithLabel("gradients"))
	})
	for _, err := range errs {
		require.ErrorAs(t, err, new(*ccl.MismatchError))
	}
	documents := load(t, dir)
	require.Len(t, documents, 3)
	for i, d := range documents {
		require.Equal(t, fmt.Sprint("rank ", i), d.Writer)
		require.Len(t, d.Ranks, 3)
		r := d.Ranks[i]
		require.Equal(t, os.Getpid(), r.PID)
		require.Len(t, r.Groups, 1)
		require.Equal(t, `call 1, broadcast of 8 float32, root 2 by direct "weights" (done)`, r.Groups[0].Calls[0].String())
		require.Equal(t, fmt.Sprintf(`call 2, all_reduce of %d float32, max by direct "gradients" (failed)`, 8+i/2), r.Groups[0].Calls[1].String())
	}
	last, ok := ccl.LastCallOf(all[0], 2)
	require.True(t, ok)
	require.Equal(t, []any{uint64(2), "all_reduce", "gradients", ccl.Float32, 9, "direct"},
		[]any{last.Seq, last.Operation, last.Label, last.DType, last.Count, last.Algorithm})
}

// Without a directory no file is written; a rank that has nothing to report may ask for one.
func TestWriteFlight(t *testing.T) {
	require.NoError(t, (*ccl.Communicator)(nil).WriteFlight())
	dir := t.TempDir()
	quiet, all := recorded(t, local.New(2)), recorded(t, local.New(2), ccl.WithFlight(dir))
	require.NoError(t, quiet[0].WriteFlight())
	require.NoError(t, all[1].WriteFlight())
	d := load(t, dir)
	require.Len(t, d, 1)
	require.Equal(t, "rank 1", d[0].Writer)
	require.NoError(t, all[1].Close())
	require.NoError(t, all[1].WriteFlight())
	require.ErrorContains(t, recordedIn(t, filepath.Join(writeFile(t), "x")).WriteFlight(), "flight recorder")
}

func recordedIn(t *testing.T, dir string) *ccl.Communicator {
	return recorded(t, local.New(2), ccl.WithFlight(dir))[0]
}

// writeFile returns the path of a file, in which no directory can be made.
func writeFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return path
}

// Short synchronous calls have times with WithCallTimes or WithMetrics only, long and asynchronous ones always.
func TestCallTimes(t *testing.T) {
	for _, opts := range [][]ccl.Option{nil, {ccl.WithCallTimes()}, {ccl.WithMetrics()}} {
		dir := t.TempDir()
		all := recorded(t, local.New(2), append(opts, ccl.WithFlight(dir))...)
		for _, err := range onAll(all, func(c *ccl.Communicator) error {
			short, long := make([]byte, 1<<16-1), make([]byte, 1<<16)
			return firstOf(ccl.AllReduce(bg, c, short, short, ccl.Sum), ccl.AllReduce(bg, c, long, long, ccl.Sum),
				started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, c, short, short, ccl.Sum, async) }).Wait(bg))
		}) {
			require.NoError(t, err)
		}
		require.NoError(t, all[0].WriteFlight())
		calls := load(t, dir)[0].Ranks[0].Groups[0].Calls
		require.Equal(t, opts != nil, !calls[0].Begun.IsZero())
		require.Equal(t, opts != nil, !calls[0].Ended.IsZero())
		for _, c := range calls[1:] {
			require.WithinDuration(t, time.Now(), c.Begun, time.Minute)
			require.False(t, c.Ended.Before(c.Begun))
		}
	}
}

// Marks are in the records of their rank, of whichever group.
func TestMark(t *testing.T) {
	dir := t.TempDir()
	all := recorded(t, local.New(2), ccl.WithFlight(dir))
	for _, err := range onAll(all, func(c *ccl.Communicator) error {
		inner, err := c.Split(bg, 0, 0)
		if err != nil {
			return err
		}
		inner.Mark("forward", 1)
		c.Mark("backward", 1)
		c.Mark("optimizer", 2)
		return inner.Close()
	}) {
		require.NoError(t, err)
	}
	require.NoError(t, all[0].WriteFlight())
	for _, r := range load(t, dir)[0].Ranks {
		require.Equal(t, []any{"forward", r.Groups[1].ID, 1}, []any{r.Marks[0].Label, r.Marks[0].Group, r.Marks[0].Step})
		require.Equal(t, []any{"backward", r.Groups[0].ID, 1}, []any{r.Marks[1].Label, r.Marks[1].Group, r.Marks[1].Step})
		require.False(t, r.Marks[1].At.Before(r.Marks[0].At))
		require.Equal(t, "optimizer", r.Marks[2].Label)
	}
	(*ccl.Communicator)(nil).Mark("nothing", 1)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Calls of groups and messages are recorded beside the first group's, also after that was closed.
func TestFlightOfGroups(t *testing.T) {
	dir := t.TempDir()
	all := recorded(t, local.New(3), ccl.WithFlight(dir))
	groups := make([]*ccl.Communicator, 3)
	for _, err := range onAll(all, func(c *ccl.Communicator) (err error) {
		if groups[c.Rank()], err = c.Split(bg, c.Rank()/2, 0); err != nil {
			return err
		}
		switch c.Rank() {
		case 0:
			err = ccl.Send(bg, groups[0], []int64{1, 2, 3}, 1, 9)
		case 1:
			_, err = ccl.Recv(bg, groups[1], make([]int64, 3), 0, 9)
		}
		return firstOf(err, groups[c.Rank()].Barrier(bg))
	}) {
		require.NoError(t, err)
	}
	for _, c := range all {
		require.NoError(t, c.Close())
	}
	errs := onAll(groups[:2], func(c *ccl.Communicator) error {
		if c.Rank() == 0 {
			return c.Reject(bg, fmt.Errorf("no"))
		}
		return c.Barrier(bg)
	})
	require.ErrorAs(t, errs[1], new(*ccl.CollectiveFailedError))
	d := load(t, dir)[0]
	require.Len(t, d.Ranks, 3)
	for rank, r := range d.Ranks[:2] {
		require.Len(t, r.Groups, 2)
		require.True(t, r.Groups[0].Left)
		g := r.Groups[1]
		require.Equal(t, []any{rank, 2, groups[0].Name()}, []any{g.Rank, g.Size, g.Name})
		require.Equal(t, "call 1, barrier (done)", g.Calls[0].String())
		require.Equal(t, []string{"call 2 (rejected)", "call 2, barrier (failed)"}[rank], g.Calls[1].String())
		require.Len(t, r.Messages, 1)
		require.Equal(t, g.ID, r.Messages[0].Group)
		require.Equal(t, []string{"message 1, send of 3 int64 to rank 1, tag 9 (done)", "message 1, recv of 3 int64 from rank 0, tag 9 (done)"}[rank], r.Messages[0].String())
	}
	require.Empty(t, d.Ranks[2].Messages)
	require.Len(t, d.Ranks[2].Groups, 1) // a group of one rank records nothing
}

// Asynchronous calls are recorded when they run, in their order.
func TestFlightOfAsyncCalls(t *testing.T) {
	dir := t.TempDir()
	all := recorded(t, local.New(2), ccl.WithFlight(dir))
	for _, err := range onAll(all, func(c *ccl.Communicator) error {
		x := make([]int32, 4)
		first := started(func(async ccl.CallOption) error {
			return ccl.AllReduce(bg, c, x, x, ccl.Sum, ccl.WithLabel("first"), async)
		})
		second := started(func(async ccl.CallOption) error { return c.Barrier(bg, ccl.WithLabel("second"), async) })
		return firstOf(first.Wait(bg), second.Wait(bg))
	}) {
		require.NoError(t, err)
	}
	require.NoError(t, all[0].WriteFlight())
	calls := load(t, dir)[0].Ranks[0].Groups[0].Calls
	require.Equal(t, []string{"first", "second"}, []string{calls[0].Label, calls[1].Label})
}

// A transport without memory for records leaves each rank its own.
func TestFlightWithoutSharedMemory(t *testing.T) {
	type plain struct{ transport.Endpoint }
	eps := local.New(2)
	for i := range eps {
		eps[i] = plain{eps[i]}
	}
	dir := t.TempDir()
	all := recorded(t, eps, ccl.WithFlight(dir))
	errs := onAll(all, func(c *ccl.Communicator) error {
		ctx, cancel := context.WithCancel(bg)
		if c.Rank() == 1 {
			cancel()
		}
		defer cancel()
		return c.Barrier(ctx)
	})
	require.Error(t, errs[0])
	d := load(t, dir)[0]
	require.Len(t, d.Ranks, 1)
	require.Equal(t, "call 1, barrier (failed)", d.Ranks[0].Groups[0].Calls[0].String())
	_, ok := ccl.LastCallOf(all[0], 1)
	require.False(t, ok)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(text), "0001-01-01") // no times
}
