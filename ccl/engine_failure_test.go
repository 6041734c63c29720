package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

// If ranks make different calls, the errors of all ranks name the field that differs, and no buffer
// is touched.
func TestMismatch(t *testing.T) {
	texts := golden.Errors(t)
	// Each call fills its buffers with 7 first and reports what it finds later.
	type call func(c *ccl.Communicator, opts ...ccl.CallOption) (touched bool, err error)
	reduce := func(n int, op ccl.Op) call {
		return func(c *ccl.Communicator, opts ...ccl.CallOption) (bool, error) {
			send, recv := slices.Repeat([]int32{7}, n), slices.Repeat([]int32{7}, n)
			err := ccl.AllReduce(bg, c, send, recv, op, opts...)
			return slices.Max(recv) != 7 || slices.Max(send) != 7, err
		}
	}
	bytes := func(n int) call {
		return func(c *ccl.Communicator, opts ...ccl.CallOption) (bool, error) {
			x := slices.Repeat([]uint8{7}, n)
			err := ccl.AllReduce(bg, c, x, x, ccl.Sum, opts...)
			return slices.Max(x) != 7, err
		}
	}
	broadcast := func(n, root int) call {
		return func(c *ccl.Communicator, opts ...ccl.CallOption) (bool, error) {
			x := slices.Repeat([]int32{7}, n)
			if c.Rank() == root {
				x[0] = 6
			}
			err := ccl.Broadcast(bg, c, x, root, opts...)
			return slices.Max(x) != 7, err
		}
	}
	gather := func(counts ...int) call {
		return func(c *ccl.Communicator, opts ...ccl.CallOption) (bool, error) {
			recv := slices.Repeat([]int32{7}, 3000)
			err := ccl.AllGatherV(bg, c, make([]int32, counts[c.Rank()]), recv, counts, nil, opts...)
			return slices.Min(recv) != 7, err
		}
	}
	barrier := func(c *ccl.Communicator, opts ...ccl.CallOption) (bool, error) {
		return false, c.Barrier(bg, opts...)
	}
	by := func(entry string, do call) call {
		return func(c *ccl.Communicator, opts ...ccl.CallOption) (bool, error) {
			return do(c, append(opts, ccl.WithAlgorithm(entry))...)
		}
	}
	keyed := func(key string, do call) call {
		return func(c *ccl.Communicator, opts ...ccl.CallOption) (bool, error) {
			return do(c, append(opts, ccl.WithKey(key))...)
		}
	}
	tests := []struct {
		field  string
		most   call // what ranks 0 and 2 do
		one    call // what rank 1 does
		values []string
	}{
		{"count", reduce(3, ccl.Sum), reduce(4, ccl.Sum), []string{"3", "4"}},
		{"count", reduce(3000, ccl.Sum), reduce(1, ccl.Sum), []string{"3000", "1"}},
		{"count", gather(1, 2, 3), gather(1, 2, 4), []string{"6", "7"}},
		{"counts", gather(1, 2, 3), gather(2, 2, 2), nil},
		{"dtype", reduce(3, ccl.Sum), bytes(12), []string{"int32", "uint8"}},
		{"op", reduce(3, ccl.Sum), reduce(3, ccl.Max), []string{"sum", "max"}},
		{"op", reduce(999, ccl.Avg), reduce(999, ccl.Min), []string{"avg", "min"}},
		{"root", broadcast(9, 0), broadcast(9, 2), []string{"0", "2"}},
		{"collective", reduce(9, ccl.Sum), broadcast(9, 0), []string{"all_reduce", "broadcast"}},
		{"collective", barrier, gather(5, 5, 5), []string{"barrier", "all_gather"}},
		{"key", keyed("left", reduce(3, ccl.Sum)), keyed("right", reduce(3, ccl.Sum)), []string{`"left"`, `"right"`}},
		{"key", keyed("left", reduce(3000, ccl.Sum)), reduce(4000, ccl.Max), []string{`"left"`, "none"}},
		{"key", keyed("left", broadcast(9, 0)), keyed("right", broadcast(9, 1)), []string{`"left"`, `"right"`}},
		{"key", barrier, keyed("right", barrier), []string{"none", `"right"`}},
		{"key", keyed("left", gather(1, 2, 3)), keyed("right", gather(2, 2, 2)), []string{`"left"`, `"right"`}},
		{"collective", keyed("left", barrier), keyed("right", gather(5, 5, 5)), []string{"barrier", "all_gather"}},
		{"algorithm", by("direct", reduce(500, ccl.Sum)), by("ring", reduce(500, ccl.Sum)), []string{"direct", "ring"}},
	}
	everyWorld(t, func(t *testing.T, connect connector) {
		for i, x := range tests {
			t.Run(fmt.Sprintf("%d/%s", i, x.field), func(t *testing.T) {
				group := group(t, connect, 3)
				allSum(t, group, 5)
				touched := make([]bool, 3)
				errs := each(3, func(r int) (err error) {
					do := x.most
					if r == 1 {
						do = x.one
					}
					touched[r], err = do(group[r])
					return err
				})
				require.Equal(t, make([]bool, 3), touched)
				var first *ccl.MismatchError
				require.ErrorAs(t, errs[0], &first)
				texts.Add(fmt.Sprintf("%d/%s", i, x.field), errs[1])
				require.Equal(t, x.field, first.Field)
				require.Len(t, first.Values, 2)
				require.Equal(t, []int{0, 2}, first.Values[0].Ranks)
				require.Equal(t, []int{1}, first.Values[1].Ranks)
				for k, v := range x.values {
					require.Equal(t, v, first.Values[k].Value)
				}
				for r, err := range errs {
					var failed *ccl.CollectiveFailedError
					require.ErrorAs(t, err, &failed)
					require.Equal(t, r, failed.Rank)
					require.Equal(t, -1, failed.Peer)
					require.Equal(t, uint64(2), failed.Seq)
					var mine *ccl.MismatchError
					require.ErrorAs(t, err, &mine)
					require.Equal(t, first, mine)
				}
				requireFailedFor(t, group, func(err error) bool {
					mine, ok := errors.AsType[*ccl.MismatchError](err)
					return ok && mine.Error() == first.Error()
				})
			})
		}
	})
}

// requireFailedFor makes calls on a group that has failed: each returns the first
// cause at once.
func requireFailedFor(t *testing.T, group []*ccl.Communicator, cause func(err error) bool) {
	t.Helper()
	for _, c := range group {
		x := make([]uint8, 2)
		for _, err := range []error{
			ccl.AllReduce(bg, c, x, x, ccl.Min),
			ccl.Broadcast(bg, c, x, 0),
			ccl.Broadcast(bg, c, x, -1),
			c.Barrier(bg),
		} {
			var failed *ccl.CollectiveFailedError
			require.ErrorAs(t, err, &failed)
			require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
			require.True(t, cause(err), "rank %d: %v", c.Rank(), err)
		}
		require.True(t, cause(c.Err()), "rank %d: Err: %v", c.Rank(), c.Err())
	}
}

// If some ranks reject a call that others accept, the group fails, and every rank's error names the
// ranks that rejected it.
func TestRefusedBySome(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, refuser := range []int{0, 2} {
			for before := range 3 { // calls that all refused, just before
				group := group(t, connect, 3)
				errs := each(3, func(r int) error {
					c := group[r]
					x := make([]int64, 40)
					for range before {
						if err := refused(c); err == nil {
							return errors.New("not refused")
						}
					}
					if r != refuser {
						return ccl.AllReduce(bg, c, x, x, ccl.Sum)
					}
					var size *ccl.InvalidBufferSizeError
					if err := ccl.AllReduce(bg, c, x, x[1:], ccl.Sum); !errors.As(err, &size) {
						return fmt.Errorf("refused with %w", err)
					}
					return ccl.AllReduce(bg, c, x, x, ccl.Sum)
				})
				arguments := func(err error) bool {
					m, ok := errors.AsType[*ccl.MismatchError](err)
					return ok && m.Field == "arguments" && slices.ContainsFunc(m.Values, func(v ccl.MismatchValue) bool {
						return v.Outcome == transport.OutcomeRejected && slices.Equal(v.Ranks, []int{refuser})
					})
				}
				for r, err := range errs {
					require.True(t, arguments(err), "rank %d: %v", r, err)
				}
				requireFailedFor(t, group, arguments)
			}
		}
	})
}

// If a rank has not reached a call that another rank rejected, the error does not claim that it
// accepted the call. If its own arguments are wrong as well, it reports that, not the failure.
func TestRefusedBeforeAllAreThere(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		group := group(t, connect, 3)
		allSum(t, group, 5)
		want := &ccl.MismatchError{Field: "arguments", Values: []ccl.MismatchValue{
			{Value: "rejected", Outcome: transport.OutcomeRejected, Ranks: []int{0}, Why: "ccl: all_reduce: recv has 39 elements, want 40"},
			{Value: "accepted", Outcome: transport.OutcomeAccepted, Ranks: []int{1}},
			{Value: "not there yet", Outcome: transport.OutcomeAbsent, Ranks: []int{2}},
		}}
		x := make([]int64, 40)
		require.ErrorAs(t, ccl.AllReduce(bg, group[0], x, x[1:], ccl.Sum), new(*ccl.InvalidBufferSizeError))
		requireMismatch := func(err error) {
			t.Helper()
			var got *ccl.MismatchError
			require.ErrorAs(t, err, &got)
			require.Equal(t, want, got)
		}
		requireMismatch(ccl.AllReduce(bg, group[1], x, x, ccl.Sum))

		err := ccl.AllReduce(bg, group[2], x, x[2:], ccl.Sum)
		requireMismatch(err)
		var size *ccl.InvalidBufferSizeError
		require.ErrorAs(t, err, &size)
		require.Equal(t, 38, size.Actual)
		require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
		require.Equal(t, "ccl: all_reduce: recv has 38 elements, want 40; and ccl: all_reduce of 38 int64, call 2 at LINE, rank 2: "+
			want.Error(), withoutLines(err))
		require.Contains(t, ccl.AllReduce(bg, group[2], x, x[2:], ccl.Sum).Error(), "the group has failed before; destroy it and initialize it again: "+want.Error())
		for _, err := range []error{
			ccl.AllReduce(bg, group[2], x, x, ccl.Sum, ccl.WithAlgorithm("none such")),
			ccl.AllReduceCoalesced(bg, group[2], [][]int64{x, x}, ccl.Sum),
			ccl.Broadcast(bg, group[2], x, 3),
			started(func(async ccl.CallOption) error { return ccl.AllReduce(bg, group[2], x, x[2:], ccl.Sum, async) }).Wait(bg),
		} {
			requireMismatch(err)
			require.ErrorContains(t, err, "; and ccl: ")
		}
		err = ccl.AllReduce(bg, group[2], x, x[1:], ccl.Sum) // the mistake of rank 0
		requireMismatch(err)
		require.ErrorAs(t, err, &size)
		require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
		require.Equal(t, "ccl: all_reduce: recv has 39 elements, want 40 (call 2 at LINE)", withoutLines(err), "it says the reason once")
		requireMismatch(ccl.AllReduce(bg, group[2], x, x, ccl.Sum))
		require.ErrorAs(t, ccl.AllReduce(bg, group[0], x, x, ccl.Sum), new(*ccl.MismatchError))
	})
}

// If ranks refuse a call, all ranks return the same error, which has the reasons: the other ranks
// in this call, the ranks that refused in their next one. A reason given for another call is
// left out.
func TestReasonsOfRefusals(t *testing.T) {
	texts := golden.Errors(t)
	wordy := &ccl.Kernel{Run: rightReduce, Supports: func(s ccl.Shape) error {
		return errors.New("no\n\tfewer\x1b[31m than\xff " + strings.Repeat("é", 500))
	}}
	exits := &ccl.Kernel{Run: rightReduce, Supports: func(ccl.Shape) error { runtime.Goexit(); return nil }}
	x := make([]int64, 40)
	short := func(by int) func(c *ccl.Communicator) error {
		return func(c *ccl.Communicator) error { return ccl.AllReduce(bg, c, x, x[by:], ccl.Sum) }
	}
	rootless := func(c *ccl.Communicator) error { return ccl.Broadcast(bg, c, x, 7) }
	type calls []func(c *ccl.Communicator) error
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, c := range []struct {
			name    string
			refused [3]calls // by rank, one after the other
			want    string   // the others accept the call after theirs
		}{
			{"one", [3]calls{{}, {}, {short(1)}},
				"accepted on rank 0; not there yet on rank 1; rejected on rank 2 (ccl: all_reduce: recv has 39 elements, want 40)"},
			{"two", [3]calls{{}, {short(1)}, {rootless}},
				"accepted on rank 0; rejected on rank 1 (ccl: all_reduce: recv has 39 elements, want 40); " +
					"rejected on rank 2 (ccl: broadcast: root 7 is not a rank of a group of 3 (0 to 2))"},
			{"two for one reason", [3]calls{{}, {short(2)}, {short(2)}},
				"accepted on rank 0; rejected on ranks 1, 2 (ccl: all_reduce: recv has 38 elements, want 40)"},
			{"after a call that all refused", [3]calls{{short(1)}, {short(1)}, {rootless, short(2)}},
				"accepted on rank 0; not there yet on rank 1; rejected on rank 2 (ccl: all_reduce: recv has 38 elements, want 40)"},
			{"and more calls", [3]calls{{}, {}, {rootless, short(1), short(2), short(3)}},
				"accepted on rank 0; not there yet on rank 1; rejected on rank 2 (ccl: broadcast: root 7 is not a rank of a group of 3 (0 to 2))"},
			{"after and more", [3]calls{{short(1)}, {short(1)}, {short(1), short(2), short(3), rootless}},
				"accepted on rank 0; not there yet on rank 1; rejected on rank 2"},
			{"for ever", [3]calls{{}, {}, {func(c *ccl.Communicator) error {
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = ccl.AllReduce(bg, c, x, x, ccl.Sum, ccl.WithAlgorithm("exits"))
				}()
				<-done
				return errors.New("exited")
			}}}, "accepted on rank 0; not there yet on rank 1; rejected on rank 2 (ccl: all_reduce: its goroutine ended while a kernel was chosen)"},
		} {
			group := join(t, connect, settings(t, 3, patient, map[string]*ccl.Kernel{"exits": exits}))
			allSum(t, group, 5)
			for r, refused := range c.refused {
				for _, call := range refused {
					require.Error(t, call(group[r]), c.name)
				}
			}
			for r := range group {
				var got *ccl.MismatchError
				require.ErrorAs(t, sum(group[r], 40), &got, "%s: rank %d", c.name, r)
				require.EqualError(t, got, "ranks disagree on arguments: "+c.want, "%s: rank %d", c.name, r)
				texts.Add(c.name, got)
			}
		}

		group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"wordy": wordy}))
		require.Error(t, ccl.AllReduce(bg, group[0], x, x, ccl.Sum, ccl.WithAlgorithm("wordy")))
		var whys []string
		for r := range group {
			got, ok := errors.AsType[*ccl.MismatchError](sum(group[1-r], 40))
			require.True(t, ok)
			require.Equal(t, "rejected", got.Values[0].Value)
			whys = append(whys, got.Values[0].Why)
		}
		require.Equal(t, whys[0], whys[1])
		require.Contains(t, whys[0], "no fewer [31m than\ufffd ééé")
		require.Regexp(t, "é[.]{3}$", whys[0])
		require.LessOrEqual(t, len(whys[0]), transport.ReasonBytes)
		require.Greater(t, len(whys[0]), transport.ReasonBytes-5)

		eps, err := connect(2)
		require.NoError(t, err)
		eps[0].Fail(&transport.Failure{Kind: transport.FailureAborted, By: 0, Text: "it failed before"})
		eps[0].Reject(1, "it refused after")
		require.Equal(t, "it failed before", eps[1].Failure().Text, "a refusal leaves failures alone")
	})
}

// A timeout names the rank that makes no call. If that rank makes the call later, it fails.
func TestTimeoutNamesTheMissing(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		group := group(t, connect, 2)
		allSum(t, group, 100)
		err := sum(group[0], 100, ccl.WithTimeout(30*time.Millisecond))
		missing := func(err error) bool {
			timeout, ok := errors.AsType[*transport.TimeoutError](err)
			return ok && slices.Equal(timeout.Missing, []int{1}) && timeout.Seq == 2 && len(timeout.Behind) == 0
		}
		require.True(t, missing(err), "%v", err)
		var failed *ccl.CollectiveFailedError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 1, failed.Peer)
		require.Equal(t, "direct", failed.Algorithm)
		requireFailedFor(t, group, missing)
	})
}

// A timeout also names a rank that entered the call but makes no progress.
func TestTimeoutNamesTheStuck(t *testing.T) {
	t.Parallel()
	everyWorld(t, func(t *testing.T, connect connector) {
		t.Parallel()
		release := make(chan struct{})
		stuck := &ccl.Kernel{Run: func(c *ccl.Call) error {
			if c.Rank() == 1 {
				<-release
				return c.Send(0, c.In())
			}
			return c.Recv(1, c.Out())
		}}
		group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"stuck": stuck}))
		errs := each(2, func(r int) error {
			if r == 0 {
				defer close(release)
			}
			return sum(group[r], 9, ccl.WithAlgorithm("stuck"), ccl.WithTimeout(200*time.Millisecond))
		})
		for _, err := range errs {
			var timeout *transport.TimeoutError
			require.ErrorAs(t, err, &timeout)
			require.Equal(t, []int{1}, timeout.Behind)
			require.Empty(t, timeout.Missing)
		}
		require.True(t, strings.HasSuffix(errs[0].Error(), "rank 0 waited for rank 1 inside call 1 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call)"), errs[0])
	})
}

// If a rank has left, the first call that needs it and all later calls name it.
func TestPeerLost(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		group := group(t, connect, 3)
		errs := each(3, func(r int) error {
			if err := sum(group[r], 10); err != nil {
				return err
			}
			if r == 1 {
				return group[r].Close()
			}
			return sum(group[r], 1000)
		})
		lost := func(err error) bool {
			lost, ok := errors.AsType[*transport.PeerLostError](err)
			return ok && lost.Rank == 1
		}
		require.NoError(t, errs[1])
		require.True(t, lost(errs[0]), "%v", errs[0])
		require.True(t, lost(errs[2]), "%v", errs[2])
		requireFailedFor(t, []*ccl.Communicator{group[0], group[2]}, lost)
	})
}

// A rank closes its communicator while it waits in a call, and returns: from then on no rank may
// read its buffers, not even a rank that comes late and finds that all ranks have entered the
// call.
func TestCloseWhileWaiting(t *testing.T) {
	t.Parallel()
	everyWorld(t, func(t *testing.T, connect connector) {
		t.Parallel()
		for _, entry := range []string{"direct", "ring"} {
			logger, written := logged(slog.LevelWarn)
			group := join(t, connect, settings(t, 2, patient, nil), logger)
			x := slices.Repeat([]int32{1}, 5000)
			returned := make(chan error)
			go func() {
				returned <- ccl.AllReduce(bg, group[0], x, x, ccl.Sum, ccl.WithAlgorithm(entry), ccl.WithTimeout(time.Second))
			}()
			<-written.first // it waits for rank 1
			require.NoError(t, group[0].Close())
			require.ErrorIs(t, <-returned, ccl.ErrClosed)
			clear(x)
			y := slices.Repeat([]int32{1}, 5000)
			err := ccl.AllReduce(bg, group[1], y, y, ccl.Sum, ccl.WithAlgorithm(entry))
			var lost *transport.PeerLostError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, 0, lost.Rank)
			require.Equal(t, make([]int32, 5000), x)
		}
	})
}

// Abort by any rank ends the calls of all ranks, and Err returns the reason.
func TestAbort(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		because := errors.New("the worker gave up")
		group := group(t, connect, 3)
		require.NoError(t, group[0].Err())
		done := make(chan []error)
		go func() {
			done <- each(2, func(r int) error { return sum(group[r], 100) })
		}()
		group[2].Abort(because)
		group[2].Abort(errors.New("too late"))
		group[1].Abort(nil)
		aborted := func(err error) bool {
			aborted, ok := errors.AsType[*transport.AbortedError](err)
			return ok && aborted.By == 2 && aborted.Cause.Error() == because.Error()
		}
		for r, err := range <-done {
			require.True(t, aborted(err), "%v", err)
			var failed *ccl.CollectiveFailedError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, r, failed.Rank)
			require.Equal(t, 2, failed.Peer)
		}
		requireFailedFor(t, group, aborted)
		require.ErrorIs(t, group[2].Err(), because)
		require.NoError(t, group[2].Close())
		group[2].Abort(because) // nothing left to do
	})
}

// A rank whose context ends in a call returns the error of the context; the errors of the other
// ranks name that rank.
func TestCancelled(t *testing.T) {
	t.Parallel()
	everyWorld(t, func(t *testing.T, connect connector) {
		t.Parallel()
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
			group := group(t, connect, 3)
			ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
			defer cancel()
			if cause == context.Canceled {
				ctx, cancel = context.WithCancel(bg)
				time.AfterFunc(200*time.Millisecond, cancel)
			}
			errs := each(2, func(r int) error {
				x := make([]float64, 50)
				if r == 1 {
					return ccl.AllReduce(ctx, group[r], x, x, ccl.Sum)
				}
				return ccl.AllReduce(bg, group[r], x, x, ccl.Sum)
			})
			aborted := func(err error) bool {
				aborted, ok := errors.AsType[*transport.AbortedError](err)
				return ok && aborted.By == 1
			}
			require.ErrorIs(t, errs[1], cause)
			require.True(t, aborted(errs[0]), "%v", errs[0])
			requireFailedFor(t, []*ccl.Communicator{group[0], group[2]}, aborted)
			requireFailedFor(t, group[1:2], func(err error) bool { return errors.Is(err, cause) })
		}
	})
}

// A call that is complete on all ranks succeeds on all, also where a rank has given up the wait for the last
// one, because its context has ended or the group was aborted. The next call fails on all.
func TestCompletedAfterFailure(t *testing.T) {
	for _, isAbort := range []bool{false, true} {
		everyWorld(t, func(t *testing.T, connect connector) {
			var g []*ccl.Communicator
			returned := make(chan struct{})
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			late := &ccl.Kernel{Run: func(c *ccl.Call) error {
				if c.Rank() == 0 {
					defer close(returned)
				}
				if err := rightReduce(c); err != nil || c.Rank() == 0 {
					return err
				}
				<-returned
				if isAbort {
					g[1].Abort(errors.New("enough"))
				} else {
					cancel()
				}
				for g[1].Err() == nil { // rank 0 waits for this one
					runtime.Gosched()
				}
				return nil
			}}

			g = join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"late": late}))
			errs := each(2, func(r int) error {
				x := slices.Repeat([]float32{1}, 20_000)
				err := ccl.AllReduce(ctx, g[r], x, x, ccl.Sum, ccl.WithAlgorithm("late"))
				if err == nil && slices.ContainsFunc(x, func(got float32) bool { return got != 2 }) {
					err = errors.New("the result is wrong")
				}
				return err
			})
			require.NoError(t, errors.Join(errs...))
			for _, err := range each(2, func(r int) error { return sum(g[r], 1) }) {
				require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
			}
		})
	}
}

// The text of an error names the call, the mistake, and the rank that made it.
func TestFailureText(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		group := group(t, connect, 2)
		allSum(t, group, 10)
		group[1].Abort(errors.New("out of paper"))
		require.Equal(t, "ccl: barrier, call 2 at LINE, rank 0: aborted by rank 1: out of paper", withoutLines(group[0].Barrier(bg)),
			"the first call that fails says no more than the cause")
		require.Equal(t, "ccl: barrier, call 2 at LINE, rank 0: the group has failed before; destroy it and initialize it again: "+
			"aborted by rank 1: out of paper", withoutLines(group[0].Barrier(bg)))
	})
}

// refused makes a call that is rejected for its arguments.
func refused(c *ccl.Communicator) error {
	return ccl.Broadcast(bg, c, []uint8{1}, c.Size())
}
