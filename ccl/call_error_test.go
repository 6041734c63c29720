package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/transport"
)

var codeLine = regexp.MustCompile(`\S+\.go:\d+`)

// withoutLines returns the text of err with LINE for each line of a program.
func withoutLines(err error) string { return codeLine.ReplaceAllString(err.Error(), "LINE") }

// The error of a call that fails, and of one that is rejected, has the line of the program that made it, its
// label and its size.
func TestCallErrorSaysWhere(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		x, label := make([]float32, 8), ccl.WithLabel("grads of block 3")
		var call *ccl.CallError

		for r, err := range each(2, func(r int) error {
			return ccl.AllReduce(bg, g[r], x, x[:0], ccl.Sum, label)
		}) {
			require.ErrorAs(t, err, &call, "rank %d", r)
			require.Equal(t, `ccl: all_reduce: recv has 0 elements, want 8 (call 1 "grads of block 3" at LINE)`, withoutLines(err))
			require.Equal(t, "all_reduce", call.Operation)
			require.Equal(t, uint64(1), call.Seq)
		}

		_, file, line, _ := runtime.Caller(0)
		err := ccl.AllReduce(bg, g[0], x, x, ccl.Sum, label, ccl.WithTimeout(time.Millisecond))
		require.ErrorAs(t, err, &call)
		require.Equal(t, ccl.CallError{
			Operation: "all_reduce", Label: "grads of block 3", DType: ccl.Float32, Count: 8, Seq: 2,
			File: file, Line: line + 1, Err: call.Err,
		}, *call)
		require.Equal(t, `ccl: all_reduce "grads of block 3" of 8 float32 by direct, call 2 at LINE, rank 0: `+
			"timed out after 1ms: waited for rank 1, which did not make call 2 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call); "+
			`rank 1 last made call 1, all_reduce "grads of block 3" of 8 float32, and rejected it, and is in no call`, withoutLines(err))
		var failed *ccl.CollectiveFailedError
		require.ErrorAs(t, err, &failed)
		require.Contains(t, err.Error(), " at "+fmt.Sprintf("ccl/%s:%d", filepath.Base(file), line+1))
	})
}

// The error of a call that ranks did not make says which call they made last.
func TestCallErrorSaysLastCall(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		require.NoError(t, errors.Join(each(3, func(r int) error {
			if err := sum(g[r], 6); err != nil {
				return err
			}
			return ccl.Broadcast(bg, g[r], make([]int16, 9), 2)
		})...))
		err := sum(g[0], 7, ccl.WithTimeout(time.Millisecond))
		require.Equal(t, "ccl: all_reduce of 7 float32 by direct, call 3 at LINE, rank 0: timed out after 1ms: "+
			"waited for ranks 1, 2, which did not make call 3 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call); ranks 1, 2 last made call 2, broadcast of 9 int16 by direct, and are in no call", withoutLines(err))
		var failed *ccl.CollectiveFailedError
		require.ErrorAs(t, err, &failed)
		require.Len(t, failed.Last, 1)
		require.Equal(t, "ranks 1, 2 last made call 2, broadcast of 9 int16 by direct, and are in no call", failed.Last[0].String())
		require.ErrorAs(t, sum(g[1], 7), &failed)
		require.Empty(t, failed.Last, "it is one of them")
		require.Equal(t, 1, failed.Peer)
	})
}

// The error of a call or a message that lost a rank, or in which a rank is stuck, says what that rank did last.
func TestCallErrorSaysWhatTheLostDid(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		require.NoError(t, errors.Join(each(3, func(r int) error { return sum(g[r], 6, ccl.WithLabel("loss")) })...))
		require.NoError(t, g[2].Close())
		last := `; rank 2 last made call 1, all_reduce "loss" of 6 float32 by direct`
		var lost *transport.PeerLostError
		_, err := ccl.Recv(bg, g[1], make([]int32, 1), 2, 0)
		require.ErrorAs(t, err, &lost)
		require.ErrorContains(t, err, last)
		for r, err := range each(2, func(r int) error { return sum(g[r], 6) }) {
			require.ErrorAs(t, err, &lost, "rank %d", r)
			require.ErrorContains(t, err, last)
		}

		g = group(t, connect, 2)
		require.NoError(t, errors.Join(each(2, func(r int) error { return g[r].Barrier(bg) })...))
		_, err = ccl.Recv(bg, g[0], make([]int32, 1), 1, 0, ccl.WithTimeout(time.Millisecond))
		require.ErrorAs(t, err, new(*transport.TimeoutError))
		require.ErrorContains(t, err, "; rank 1 last made call 1, barrier")
	})
}

// The line of a call whose kernel panics is the call's, not the kernel's.
func TestCallErrorOfPanic(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		crash := &ccl.Kernel{Run: func(*ccl.Call) error { panic("at the disco") }}
		g := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"crash": crash}))
		_, _, line, _ := runtime.Caller(0)
		for _, err := range each(2, func(r int) error {
			return ccl.AllReduce(bg, g[r], make([]int, 9), make([]int, 9), ccl.Sum, ccl.WithAlgorithm("crash"))
		}) {
			var call *ccl.CallError
			require.ErrorAs(t, err, &call)
			require.Equal(t, line+2, call.Line, "%v", err)
		}
	})
}

// Sends and receives say where they were called, and to whom.
func TestCallErrorOfMessage(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		_, err := ccl.Recv(bg, g[0], make([]int32, 7), 1, 5, ccl.WithLabel("halo"), ccl.WithTimeout(time.Millisecond))
		require.Equal(t, `ccl: recv "halo" of 7 int32 at LINE, rank 0: from rank 1, tag 5: timed out after 1ms: rank 0 waited for rank 1 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call)`,
			withoutLines(err))
		err = ccl.Send(bg, g[0], []int8{1}, 1, -1, ccl.WithLabel("halo"))
		require.Equal(t, `ccl: send: the tag is -1, and must not be negative ("halo" at LINE)`, withoutLines(err))
		_, err = ccl.SendRecv(bg, g[0], []int8{1}, 1, make([]int8, 1), 2, 0)
		require.Equal(t, "ccl: recv: 2 is not a rank of a group of 2 (0 to 1) (at LINE)", withoutLines(err))
		_, _, err = ccl.RecvBytes(bg, g[0], 1, 0, 10, ccl.WithTimeout(time.Millisecond))
		require.Contains(t, withoutLines(err), "ccl: recv at LINE, rank 0: ")
		err = ccl.Irecv(bg, g[0], make([]int32, 7), 1, 5, ccl.WithTimeout(time.Millisecond)).Wait(bg)
		require.Contains(t, withoutLines(err), "rank 0 waited for rank 1 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call) (asynchronous, waited for at LINE; GOCCL_DEBUG=true shows where it was started)")
	})
}

// A request has its label. An error of Start says where Start was called; one of the call does so with debug.
func TestCallErrorOfRequest(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for debug, want := range map[bool]string{
			false: `ccl: all_reduce: recv has 3 elements, want 4 (call 2 "loss") (asynchronous, waited for at LINE; GOCCL_DEBUG=true shows where it was started)`,
			true:  `ccl: all_reduce: recv has 3 elements, want 4 (call 2 "loss" started at LINE)`,
		} {
			cfg, err := config.Parse("test", fmt.Appendf(nil, "version: 1\ndefaults: {debug: %t, algorithm: direct}\nalgorithms: {direct: {module: direct}}\n", debug))
			require.NoError(t, err)
			s, err := cfg.Resolve(config.Request{Ranks: 2})
			require.NoError(t, err)
			g := join(t, connect, s)
			_, _, line, _ := runtime.Caller(0)
			for _, err := range each(2, func(r int) error {
				var w ccl.Work
				label, async, send, recv := ccl.WithLabel("loss"), ccl.WithWork(&w), make([]int8, 4), make([]int8, 3)
				_ = ccl.AllReduce(bg, g[r], send, recv, ccl.Sum, label, async)
				_ = w.Wait(bg)
				_ = ccl.AllReduce(bg, g[r], send, recv, ccl.Sum, label, async)
				return w.Wait(bg)
			}) {
				require.Equal(t, want, withoutLines(err))
				var call *ccl.CallError
				require.ErrorAs(t, err, &call)
				require.True(t, call.Async)
				require.Equal(t, line+map[bool]int{true: 6, false: 7}[debug], call.Line, "of the second start, or of Wait")
				require.Equal(t, !debug, call.Waited)
			}
		}
		var none *ccl.Communicator
		err := repeat(none, []int8{1}, []int8{1}, ccl.Sum, ccl.WithLabel("loss"))(bg).Wait(bg)
		require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
		require.Contains(t, withoutLines(err), `("loss" at LINE)`)
	})
}

// An asynchronous call has its label; with debug it says where it was started.
func TestCallErrorOfAsync(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for debug, want := range map[bool]string{
			false: `ccl: all_reduce: recv has 3 elements, want 4 (call 1 "loss") (asynchronous, waited for at LINE; GOCCL_DEBUG=true shows where it was started)`,
			true:  `ccl: all_reduce: recv has 3 elements, want 4 (call 1 "loss" started at LINE)`,
		} {
			cfg, err := config.Parse("test", fmt.Appendf(nil, "version: 1\ndefaults: {debug: %t, algorithm: direct}\nalgorithms: {direct: {module: direct}}\n", debug))
			require.NoError(t, err)
			s, err := cfg.Resolve(config.Request{Ranks: 2})
			require.NoError(t, err)
			g := join(t, connect, s)
			_, _, line, _ := runtime.Caller(0)
			for _, err := range each(2, func(r int) error {
				return started(func(async ccl.CallOption) error {
					return ccl.AllReduce(bg, g[r], make([]int8, 4), make([]int8, 3), ccl.Sum, ccl.WithLabel("loss"), async)
				}).Wait(bg)
			}) {
				require.Equal(t, want, withoutLines(err))
				var call *ccl.CallError
				require.ErrorAs(t, err, &call)
				require.True(t, call.Async)
				where := line + 4 // of Wait
				if debug {
					where = line + 3 // of the call
				}
				require.Equal(t, where, call.Line)
				require.Equal(t, !debug, call.Waited)
			}
			ctx, cancel := context.WithCancelCause(bg)
			cancel(errors.New("enough"))
			err = started(func(async ccl.CallOption) error { return g[0].Barrier(ctx, ccl.WithLabel("end"), async) }).Wait(bg)
			require.ErrorContains(t, err, `"end"`)
			require.ErrorContains(t, err, "enough")
		}
	})
}

// A call that cannot start says where it was made.
func TestCallErrorOfCallThatDoesNotStart(t *testing.T) {
	err := (*ccl.Communicator)(nil).Barrier(bg, ccl.WithLabel("first"))
	require.Equal(t, `ccl: barrier: invalid communicator: it is nil ("first" at LINE)`, withoutLines(err))
	require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
	err = started(func(async ccl.CallOption) error { return (*ccl.Communicator)(nil).Barrier(bg, async) }).Wait(bg)
	require.Equal(t, "ccl: barrier: invalid communicator: it is nil (at LINE)", withoutLines(err))
}

// The error of an asynchronous call says where the program waited for it, which may be at several places, and nothing
// of the kind before.
func TestCallErrorSaysWhereTheProgramWaited(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		w := started(func(async ccl.CallOption) error {
			return g[0].Barrier(bg, ccl.WithTimeout(time.Millisecond), ccl.WithLabel("end"), async)
		})
		<-w.Done()
		var call *ccl.CallError
		require.ErrorAs(t, w.Err(), &call)
		require.Empty(t, call.File)
		require.Contains(t, call.Error(), " (asynchronous; GOCCL_DEBUG=true shows where it was started)")
		for range 2 {
			var here, there *ccl.CallError
			_, file, line, _ := runtime.Caller(0)
			require.ErrorAs(t, w.Wait(bg), &here)
			require.ErrorAs(t, w.Wait(bg), &there)
			for i, e := range []*ccl.CallError{here, there} {
				require.Equal(t, file, e.File)
				require.Equal(t, line+1+i, e.Line)
				require.True(t, e.Async && e.Waited)
				require.Contains(t, e.Error(), fmt.Sprintf(" (asynchronous, waited for at ccl/call_error_test.go:%d; ", e.Line))
				require.Same(t, call.Err, e.Err)
			}
		}
		require.Empty(t, call.File)
	})
}
