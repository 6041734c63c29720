package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/algorithms/ring"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
)

// What the engine does for every kernel. Package ccltest tests the kernels.

var bg = context.Background()

// everyWorld runs f with each way to connect ranks.
func everyWorld(t *testing.T, f func(t *testing.T, connect connector)) {
	for _, w := range []struct {
		name    string
		connect connector
	}{
		{"poll", func(n int) ([]transport.Endpoint, error) { return local.NewWaiting(n, local.Poll), nil }},
		{"park", func(n int) ([]transport.Endpoint, error) { return local.NewWaiting(n, local.Park), nil }},
		{"arena", func(n int) ([]transport.Endpoint, error) { return shm.NewHeap(n, shm.SmallestGeometry(n)) }},
	} {
		t.Run(w.name, func(t *testing.T) { f(t, w.connect) })
	}
}

type connector func(ranks int) ([]transport.Endpoint, error)

// settings returns the settings of n ranks with the entries direct, which does all calls,
// ring, and one for each of the kernels, which are all-reduces.
func settings(t *testing.T, n int, timeout time.Duration, kernels map[string]*ccl.Kernel) *config.Settings {
	registry := ccl.Registry{"direct": direct.Algorithm, "ring": ring.Algorithm}
	text := fmt.Sprintf("version: 1\ndefaults: {algorithm: direct, timeout: %v}\nalgorithms:\n  direct: {module: direct}\n  ring: {module: ring}\n", timeout)
	for name, k := range kernels {
		if k.Doc == "" {
			k.Doc = "of a test"
		}
		if k.Cost == nil {
			k.Cost = func(ccl.Shape) ccl.Cost { return ccl.Cost{} }
		}
		registry[name] = &ccl.Algorithm{
			Name: name, Doc: "of a test", Kernels: map[ccl.Collective]*ccl.Kernel{ccl.CollAllReduce: k, ccl.CollBroadcast: k},
		}
		text += fmt.Sprintf("  %s: {module: %s}\n", name, name)
	}
	cfg, err := config.Parse("test", []byte(text))
	require.NoError(t, err)
	s, err := cfg.Resolve(config.Request{Registry: registry, Ranks: n})
	require.NoError(t, err)
	return s
}

// patient is longer than anything here takes, so that a hang ends as a
// *transport.TimeoutError.
const patient = 20 * time.Second

// join connects n ranks to a group that the test closes.
func join(t *testing.T, connect connector, s *config.Settings, opts ...ccl.Option) []*ccl.Communicator {
	eps, err := connect(s.WorldSize())
	require.NoError(t, err)
	group := make([]*ccl.Communicator, len(eps))
	opts = append([]ccl.Option{ccl.WithSelector(s)}, opts...)
	errs := each(len(eps), func(r int) (err error) {
		group[r], err = ccl.New(bg, eps[r], opts...)
		return err
	})
	require.NoError(t, errors.Join(errs...))
	t.Cleanup(func() {
		for _, c := range group {
			c.Close()
		}
	})
	return group
}

// group is join with the usual settings.
func group(t *testing.T, connect connector, n int) []*ccl.Communicator {
	return join(t, connect, settings(t, n, patient, nil))
}

// each runs f for the ranks 0 to n-1 concurrently and returns their errors.
func each(n int, f func(rank int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() { errs[r] = f(r) })
	}
	wg.Wait()
	return errs
}

// sum makes an all-reduce of n ones and checks the result.
func sum(c *ccl.Communicator, n int, opts ...ccl.CallOption) error {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	if err := ccl.AllReduce(bg, c, x, x, ccl.Sum, opts...); err != nil {
		return err
	}
	for i, got := range x {
		if got != float32(c.Size()) {
			return fmt.Errorf("element %d of %d is %v on rank %d of %d", i, n, got, c.Rank(), c.Size())
		}
	}
	return nil
}

// allSum is sum on all ranks.
func allSum(t *testing.T, group []*ccl.Communicator, n int, opts ...ccl.CallOption) {
	t.Helper()
	errs := each(len(group), func(r int) error { return sum(group[r], n, opts...) })
	require.NoError(t, errors.Join(errs...))
}

// Calls of all kinds in any order, with and without WithAlgorithm, and with named element types.
func TestCallsFollowEachOther(t *testing.T) {
	type grade float64
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3, 5} {
			group := group(t, connect, n)
			errs := each(n, func(r int) error {
				c := group[r]
				for i := range 60 {
					size := []int{1, 3, 12, 13, 100, 1000}[i%6]
					if err := sum(c, size, ccl.WithAlgorithm([]string{"", "ring"}[i/6%2])); err != nil {
						return err
					}
					if err := c.Barrier(bg); err != nil {
						return err
					}
					x := make([]grade, size)
					if r == i%n {
						x[size-1] = grade(i)
					}
					if err := ccl.Broadcast(bg, c, x, i%n); err != nil {
						return err
					}
					if x[size-1] != grade(i) {
						return fmt.Errorf("broadcast %v instead of %d", x[size-1], i)
					}
					counts := make([]int, n)
					counts[i%n] = size
					if err := ccl.AllGatherV(bg, c, make([]grade, counts[r]), x, counts, nil); err != nil {
						return err
					}
					if x[size-1] != 0 {
						return fmt.Errorf("gathered %v", x[size-1])
					}
				}
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

// Results stored past the caches are right, and so are long results that are not stored past them
// because an output is not aligned.
func TestLargeAndApart(t *testing.T) {
	const n = 2<<20 + 3 // float32: 8 MiB for each of two inputs and two outputs
	group := group(t, func(n int) ([]transport.Endpoint, error) { return local.New(n), nil }, 2)
	for _, offset := range []int{0, 1} {
		errs := each(2, func(rank int) error {
			send, recv := make([]float32, n), make([]float32, offset+n)[offset:]
			for i := range send {
				send[i] = float32(rank + i&1023)
			}
			err := ccl.AllReduce(bg, group[rank], send, recv, ccl.Sum)
			for i, got := range recv {
				if want := float32(1 + 2*(i&1023)); got != want {
					return errors.Join(err, fmt.Errorf("rank %d, element %d: %v, want %v", rank, i, got, want))
				}
			}
			return err
		})
		require.NoError(t, errors.Join(errs...))
	}
}

// In a group of one rank every collective is a copy or nothing.
func TestAlone(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		c := group(t, connect, 1)[0]
		require.Equal(t, 0, c.Rank())
		require.Equal(t, 1, c.Size())

		// A copy of send to its place, and nothing else.
		send, recv := []int32{1, 2, 3}, []int32{9, 9, 9, 9, 9, 9}
		require.NoError(t, ccl.AllGatherV(bg, c, send, recv, []int{3}, []int{2}))
		require.Equal(t, []int32{9, 9, 1, 2, 3, 9}, recv)
		send[0] = 7
		require.Equal(t, int32(1), recv[2])
		require.NoError(t, ccl.AllGatherV(bg, c, recv[:3], recv, []int{3}, nil))
		require.NoError(t, ccl.AllGatherV(bg, c, nil, recv[:0], []int{0}, nil))

		var size *ccl.InvalidBufferSizeError
		for _, x := range []struct {
			send, recv     int
			counts, displs []int
			want           ccl.InvalidBufferSizeError
		}{
			{3, 3, nil, []int{0}, ccl.InvalidBufferSizeError{Buffer: "counts", Expected: 1, Actual: 0}},
			{3, 3, []int{3, 0}, []int{0}, ccl.InvalidBufferSizeError{Buffer: "counts", Expected: 1, Actual: 2}},
			{3, 3, []int{3}, []int{0, 3}, ccl.InvalidBufferSizeError{Buffer: "displs", Expected: 1, Actual: 2}},
			{2, 3, []int{3}, []int{0}, ccl.InvalidBufferSizeError{Buffer: "send", Expected: 3, Actual: 2}},
			{3, 3, []int{3}, []int{1}, ccl.InvalidBufferSizeError{Buffer: "recv", Expected: 4, Actual: 3, OrMore: true}},
			{0, 3, []int{0}, []int{5}, ccl.InvalidBufferSizeError{Buffer: "recv", Expected: 5, Actual: 3, OrMore: true}},
		} {
			err := ccl.AllGatherV(bg, c, make([]int32, x.send), make([]int32, x.recv), x.counts, x.displs)
			require.ErrorAs(t, err, &size)
			x.want.Operation = "all_gather"
			require.Equal(t, x.want, *size)
		}

		// A copy, whatever the operation, without arithmetic.
		odd := []float64{math.Copysign(0, -1), math.Inf(1), 0.1, math.MaxFloat64}
		for _, op := range []ccl.Op{ccl.Sum, ccl.Avg, ccl.Product, ccl.Min, ccl.Max} {
			got := make([]float64, len(odd))
			require.NoError(t, ccl.AllReduce(bg, c, odd, got, op))
			for i := range odd {
				require.Equal(t, math.Float64bits(odd[i]), math.Float64bits(got[i]))
			}
		}
		require.NoError(t, ccl.AllReduce(bg, c, odd, odd, ccl.Sum))
		require.ErrorAs(t, ccl.AllReduce(bg, c, odd, odd[:3], ccl.Sum), &size)
		require.Equal(t, ccl.InvalidBufferSizeError{Operation: "all_reduce", Buffer: "recv", Expected: 4, Actual: 3}, *size)
		require.ErrorAs(t, ccl.AllReduce[uint8](bg, c, nil, nil, ccl.Sum), &size)
		require.Equal(t, ccl.InvalidBufferSizeError{Operation: "all_reduce", Buffer: "send", Expected: 1, Actual: 0, OrMore: true}, *size)
		require.ErrorIs(t, ccl.AllReduce(bg, c, odd, odd, ccl.BXor), ccl.ErrNotImplemented)

		buf := []uint8{1, 2}
		require.NoError(t, ccl.Broadcast(bg, c, buf, 0))
		require.Equal(t, []uint8{1, 2}, buf)
		var root *ccl.InvalidRootError
		require.ErrorAs(t, ccl.Broadcast(bg, c, buf, 1), &root)
		require.Equal(t, ccl.InvalidRootError{Root: 1, Size: 1}, *root)
		require.ErrorAs(t, ccl.Broadcast(bg, c, buf, -1), &root)

		for range 3 {
			require.NoError(t, c.Barrier(bg))
		}
		require.NoError(t, c.Err())
	})
}

// Invalid arguments are rejected before anything else happens. If all ranks reject a call, each for
// a reason of its own, the group lives on.
func TestRefusedByAll(t *testing.T) {
	var (
		size *ccl.InvalidBufferSizeError
		bad  *ccl.InvalidArgumentError
		root *ccl.InvalidRootError
	)
	x := func(n int) []int64 { return make([]int64, n) }
	shared := x(10)
	refusals := []struct {
		name string
		call func(c *ccl.Communicator) error
		want any // a sentinel error, or a target of errors.As
	}{
		{"lengths differ", func(c *ccl.Communicator) error { return ccl.AllReduce(bg, c, x(3), x(4), ccl.Sum) }, &size},
		{"nothing to reduce", func(c *ccl.Communicator) error { return ccl.AllReduce(bg, c, x(0), x(0), ccl.Sum) }, &size},
		{"operation", func(c *ccl.Communicator) error { return ccl.AllReduce(bg, c, x(3), x(3), ccl.Op(99)) }, ccl.ErrNotImplemented},
		{"unknown operation", func(c *ccl.Communicator) error { return ccl.AllReduce(bg, c, x(3), x(3), 1<<20) }, ccl.ErrNotImplemented},
		{"partial overlap", func(c *ccl.Communicator) error { return ccl.AllReduce(bg, c, shared[:4], shared[1:5], ccl.Sum) }, &bad},
		{"unknown algorithm", func(c *ccl.Communicator) error {
			return ccl.AllReduce(bg, c, x(3), x(3), ccl.Sum, ccl.WithAlgorithm("rong"))
		}, &bad},
		{"root below 0", func(c *ccl.Communicator) error { return ccl.Broadcast(bg, c, x(3), -1) }, &root},
		{"root above", func(c *ccl.Communicator) error { return ccl.Broadcast(bg, c, x(3), c.Size()) }, &root},
		{"counts too short", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(1), x(3), []int{1, 1}, nil)
		}, &size},
		{"displs too short", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(1), x(3), []int{1, 1, 1}, []int{0, 1})
		}, &size},
		{"negative count", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(1), x(3), []int{1, -1, 1}, nil)
		}, &bad},
		{"counts that overflow", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(1), x(3), []int{math.MaxInt, math.MaxInt, 1}, nil)
		}, &bad},
		{"send too long", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(2), x(3), []int{1, 1, 1}, nil)
		}, &size},
		{"recv too short", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(1), x(2), []int{1, 1, 1}, nil)
		}, &size},
		{"recv too short for a place in the middle", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(1), x(5), []int{1, 1, 1}, []int{0, 5, 2})
		}, &size},
		{"an empty place beyond the end", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(0), x(5), []int{0, 0, 0}, []int{0, 6, 2})
		}, &size},
		{"negative displacement", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(1), x(5), []int{1, 1, 1}, []int{0, -1, 2})
		}, &bad},
		{"displacement that overflows", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(1), x(5), []int{1, 1, 1}, []int{0, math.MaxInt, 2})
		}, &bad},
		{"places overlap", func(c *ccl.Communicator) error {
			return ccl.AllGatherV(bg, c, x(2), x(9), []int{2, 2, 2}, []int{4, 0, 5})
		}, &bad},
		{"send overlaps recv elsewhere", func(c *ccl.Communicator) error {
			at := (c.Rank() + 1) % 3
			return ccl.AllGatherV(bg, c, shared[at:at+1], shared, []int{1, 1, 1}, nil)
		}, &bad},
	}
	everyWorld(t, func(t *testing.T, connect connector) {
		group := group(t, connect, 3)
		wanted := func(err error, want any) error {
			sentinel, ok := want.(error)
			if ok && !errors.Is(err, sentinel) || !ok && !errors.As(err, want) {
				return fmt.Errorf("refused with %v", err)
			}
			return nil
		}
		for _, x := range refusals {
			for _, err := range each(3, func(r int) error { return x.call(group[r]) }) {
				require.NoError(t, wanted(err, x.want), x.name)
			}
			allSum(t, group, 100)
		}
		// Each rank something else, several times in a row.
		for round := range 30 {
			errs := each(3, func(r int) error {
				for i := range 1 + round%4 {
					if err := refusals[(round*7+r*5+i)%len(refusals)].call(group[r]); err == nil {
						return errors.New("not refused")
					}
				}
				return sum(group[r], 1+round)
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

func TestAfterClose(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2} {
			group := group(t, connect, n)
			for _, c := range group {
				require.NoError(t, c.Close())
				require.NoError(t, c.Close())
				x := make([]int32, 2)
				require.ErrorIs(t, ccl.AllReduce(bg, c, x, x, ccl.Sum), ccl.ErrClosed)
				require.ErrorIs(t, ccl.AllGatherV(bg, c, x, x, []int{2}, nil), ccl.ErrClosed)
				require.ErrorIs(t, ccl.Broadcast(bg, c, x, 0), ccl.ErrClosed)
				require.ErrorIs(t, c.Barrier(bg), ccl.ErrClosed)
			}
		}
	})
}

// A second call of a rank while one is running returns ErrConcurrentUse and has no effect on the
// first.
func TestConcurrentUse(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		inside, leave := make(chan int, 2), make(chan struct{})
		slow := &ccl.Kernel{Run: func(c *ccl.Call) error {
			inside <- c.Rank()
			<-leave
			return direct.Algorithm.Kernels[ccl.CollAllReduce].Run(c)
		}}
		group := join(t, connect, settings(t, 2, patient, map[string]*ccl.Kernel{"slow": slow}))
		done := make(chan []error)
		go func() {
			done <- each(2, func(r int) error { return sum(group[r], 50, ccl.WithAlgorithm("slow")) })
		}()
		c := group[<-inside]
		x := make([]int32, 2)
		require.ErrorIs(t, ccl.AllReduce(bg, c, x, x, ccl.Sum), ccl.ErrConcurrentUse)
		require.ErrorIs(t, ccl.AllGatherV(bg, c, x, x, []int{1}, nil), ccl.ErrConcurrentUse)
		require.ErrorIs(t, ccl.Broadcast(bg, c, x, 7), ccl.ErrConcurrentUse)
		require.ErrorIs(t, c.Barrier(bg), ccl.ErrConcurrentUse)
		close(leave)
		require.NoError(t, errors.Join(<-done...))
		allSum(t, group, 7)
	})
}

// If settings differ between ranks, New fails on all of them and names the first key that differs,
// and where each rank has its value from.
func TestSettingsThatDiffer(t *testing.T) {
	const text = "version: 1\ndefaults: {timeout: 20s}\nalgorithms:\n  ring: {module: ring}\nrules: [{algorithm: ring}]\n"
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, x := range []struct {
			key, text    string
			mine, theirs ccl.MismatchValue
		}{
			{"algorithms.ring.params.chunk", "version: 1\ndefaults: {timeout: 20s}\nalgorithms:\n  ring: {module: ring, params: {chunk: 4KiB}}\nrules: [{algorithm: ring}]\n", ccl.MismatchValue{Value: "256KiB", Why: "default"}, ccl.MismatchValue{Value: "4KiB", Why: "test:4"}},
			{"defaults.timeout", "version: 1\ndefaults: {timeout: 21s}\nalgorithms:\n  ring: {module: ring}\nrules: [{algorithm: ring}]\n", ccl.MismatchValue{Value: "20s", Why: "test:2"}, ccl.MismatchValue{Value: "21s", Why: "test:2"}},
			{"algorithms.extra.module", text[:len(text)-len("rules: [{algorithm: ring}]\n")] + "  extra: {module: direct}\nrules: [{algorithm: ring}]\n", ccl.MismatchValue{Value: "unset", Why: "test"}, ccl.MismatchValue{Value: "direct", Why: "test:5"}},
		} {
			eps, err := connect(3)
			require.NoError(t, err)
			errs := each(3, func(r int) error {
				mine := text
				if r == 2 {
					mine = x.text
				}
				cfg, err := config.Parse("test", []byte(mine))
				if err != nil {
					return err
				}
				s, err := cfg.Resolve(config.Request{Ranks: 3})
				if err != nil {
					return err
				}
				_, err = ccl.New(bg, eps[r], ccl.WithSelector(s))
				return err
			})
			for _, err := range errs {
				var failed *transport.InitializationFailedError
				require.ErrorAs(t, err, &failed)
				var differ *ccl.MismatchError
				require.ErrorAs(t, err, &differ)
				require.Equal(t, x.key, differ.Field)
				x.mine.Ranks, x.theirs.Ranks = []int{0, 1}, []int{2}
				require.Equal(t, []ccl.MismatchValue{x.mine, x.theirs}, differ.Values)
			}
		}
	})
}

func TestNewFails(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		// Settings for another number of ranks; the peers learn that one is gone.
		eps, err := connect(2)
		require.NoError(t, err)
		wrong, right := settings(t, 3, patient, nil), settings(t, 2, patient, nil)
		errs := each(2, func(r int) error {
			s := []*config.Settings{right, wrong}[r]
			_, err := ccl.New(bg, eps[r], ccl.WithSelector(s))
			return err
		})
		var lost *transport.PeerLostError
		require.ErrorAs(t, errs[0], &lost)
		require.Equal(t, 1, lost.Rank)
		var failed *transport.InitializationFailedError
		require.ErrorAs(t, errs[1], &failed)
		require.ErrorContains(t, errs[1], "3 ranks")

		// A rank that gives up before the other has entered.
		eps, err = connect(2)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
		defer cancel()
		_, err = ccl.New(ctx, eps[0], ccl.WithSelector(right))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = ccl.New(bg, eps[1], ccl.WithSelector(right))
		require.ErrorAs(t, err, &failed)
	})
}

// records is a slog.Handler's output, and a signal for the first line.
type records struct {
	mu    sync.Mutex
	text  bytes.Buffer
	first chan struct{}
	once  sync.Once
}

func (r *records) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.once.Do(func() { close(r.first) })
	return r.text.Write(line)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// logged returns a logger and what it has written from a level on.
func logged(level slog.Level) (ccl.Option, *records) {
	r := &records{first: make(chan struct{})}
	return ccl.WithLogger(slog.New(slog.NewJSONHandler(r, &slog.HandlerOptions{Level: level}))), r
}

// A call that has waited for half of its timeout logs one warning, with the ranks that
// are missing, and goes on.
func TestWarnsAtHalf(t *testing.T) {
	t.Parallel()
	everyWorld(t, func(t *testing.T, connect connector) {
		t.Parallel()
		logger, written := logged(slog.LevelWarn)
		group := join(t, connect, settings(t, 2, patient, nil), logger)
		errs := each(2, func(r int) error {
			if err := group[r].Barrier(bg); err != nil {
				return err
			}
			if r == 1 {
				<-written.first
			}
			return sum(group[r], 9, ccl.WithTimeout(800*time.Millisecond), ccl.WithLabel("loss"))
		})
		require.NoError(t, errors.Join(errs...))
		require.Contains(t, written.String(), `"level":"WARN"`)
		require.Contains(t, written.String(), `"rank":0,"call":2`)
		require.Contains(t, written.String(), `"missing":[1],"collective":"all_reduce \"loss\" of 9 float32 by direct","where":"at ccl/engine_test.go:`)
		require.Contains(t, written.String(), `"last":"rank 1 last made call 1, barrier, and is in no call"`)
		require.Equal(t, 1, bytes.Count([]byte(written.String()), []byte("\n")))
	})
}

// Long results, whose first piece is staged only after Enter, are right in a mixture with other
// calls, however far a rank gets ahead.
func TestLongAndShortResults(t *testing.T) {
	const ranks = 3
	wholeIsRight := func(whole []int32, i int) error {
		for k, x := range whole {
			if want := int32(k%(len(whole)/ranks) + i + k/(len(whole)/ranks)); x != want {
				return fmt.Errorf("call %d: %d at %d instead of %d", i, x, k, want)
			}
		}
		return nil
	}
	everyWorld(t, func(t *testing.T, connect connector) {
		group := join(t, connect, settings(t, ranks, patient, nil))
		for _, err := range each(ranks, func(rank int) error {
			for i, n := range []int{5000, 300_000, 10, 262_144, 262_145, 400_000, 3} {
				mine, whole := make([]int32, n), make([]int32, n/ranks*ranks)
				for k := range mine {
					mine[k] = int32(k + i + rank)
				}
				part := make([]int32, len(whole)/ranks)
				if err := ccl.AllGather(t.Context(), group[rank], mine[:len(part)], whole); err != nil {
					return err
				}
				if err := wholeIsRight(whole, i); err != nil {
					return fmt.Errorf("all-gather, rank %d: %w", rank, err)
				}
				if err := ccl.AllReduce(t.Context(), group[rank], mine, mine, ccl.Sum); err != nil {
					return err
				}
				for k, x := range mine {
					if want := int32(ranks*(k+i) + 3); x != want { // 0 + 1 + 2
						return fmt.Errorf("call %d: rank %d has %d at %d instead of %d", i, rank, x, k, want)
					}
				}
				if rank != i%ranks {
					clear(whole)
				}
				if err := ccl.Broadcast(t.Context(), group[rank], whole, i%ranks); err != nil {
					return err
				}
				if err := wholeIsRight(whole, i); err != nil {
					return fmt.Errorf("broadcast, rank %d: %w", rank, err)
				}
			}
			return nil
		}) {
			require.NoError(t, err)
		}
	})
}
