package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
)

func numbers(seed, n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(seed*1_000_003 + i)
	}
	return x
}

// Messages of all lengths arrive, from empty ones to messages of many parts.
func TestSendRecv(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		errs := each(2, func(r int) error {
			for i, n := range []int{0, 1, 3, 4, 5, 100, 5000} {
				if r == 0 {
					if err := ccl.Send(bg, g[0], numbers(i, n), 1, 7); err != nil {
						return err
					}
					continue
				}
				got := make([]int32, n)
				from, err := ccl.Recv(bg, g[1], got, []int{0, ccl.AnySource}[i%2], 7)
				if err != nil || from != 0 {
					return fmt.Errorf("from %d: %w", from, err)
				}
				if !slices.Equal(got, numbers(i, n)) {
					return fmt.Errorf("%d elements differ", n)
				}
			}
			return nil
		})
		require.NoError(t, errors.Join(errs...))
	})
}

// A receive gets the message with its tag, in whatever order messages arrive. Messages with the
// same tag are received in the order in which they were sent.
func TestTags(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var sends []*ccl.Work
		for i := range 12 {
			sends = append(sends, ccl.Isend(bg, g[0], numbers(i, 1+40*i), 1, i%3))
		}
		for _, tag := range []int{2, 0, 1} {
			for i := tag; i < 12; i += 3 {
				got := make([]int32, 1+40*i)
				_, err := ccl.Recv(bg, g[1], got, 0, tag)
				require.NoError(t, err)
				require.Equal(t, numbers(i, 1+40*i), got)
			}
		}
		for _, w := range sends {
			require.NoError(t, w.Wait(bg))
		}
	})
}

// Of several receives that match, the one started first gets the message. Source is the sender,
// also for AnySource.
func TestIrecv(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		const n = 4
		g := group(t, connect, n)
		var works []*ccl.Work
		var bufs [][]int32
		for range 2 * (n - 1) {
			b := make([]int32, 50)
			bufs = append(bufs, b)
			works = append(works, ccl.Irecv(bg, g[0], b, ccl.AnySource, 1))
		}
		require.NoError(t, errors.Join(each(n, func(r int) error {
			if r == 0 {
				return nil
			}
			return errors.Join(ccl.Send(bg, g[r], numbers(r, 50), 0, 1), ccl.Send(bg, g[r], numbers(r+100, 50), 0, 1))
		})...))
		seen := make([]int, n)
		for i, w := range works {
			require.NoError(t, w.Wait(bg))
			from := w.Source()
			require.Equal(t, numbers(from+100*seen[from], 50), bufs[i])
			seen[from]++
		}
		require.Equal(t, []int{0, 2, 2, 2}, seen)
	})
}

// All ranks exchange messages at the same time, around rings and with themselves, while they
// make collectives.
func TestExchangeBesideCollectives(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for _, n := range []int{1, 2, 3, 5} {
			g := group(t, connect, n)
			errs := each(n, func(r int) error {
				for step := range 20 {
					w := started(func(async ccl.CallOption) error {
						return ccl.AllReduce(bg, g[r], numbers(r, 300), make([]int32, 300), ccl.Sum, async)
					})
					to, from := (r+step)%n, (r-step%n+n)%n
					got := make([]int32, 33*step)
					source, err := ccl.SendRecv(bg, g[r], numbers(r+step, 33*step), to, got, from, step)
					if err == nil && (source != from || !slices.Equal(got, numbers(from+step, 33*step))) {
						err = fmt.Errorf("step %d: wrong message from %d", step, source)
					}
					if err := errors.Join(err, sum(g[r], 10), w.Wait(bg)); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

// If the message has another type or length, the receive fails and the message stays for the
// next receive.
func TestMessageMismatch(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		for _, early := range []bool{false, true} {
			w := ccl.Isend(bg, g[0], numbers(1, 90), 1, 5)
			if early { // the message arrives before its receive is posted
				x := ccl.Isend(bg, g[0], numbers(2, 2), 1, 6)
				_, err := ccl.Recv(bg, g[1], make([]int32, 2), 0, 6)
				require.NoError(t, errors.Join(err, x.Wait(bg)))
			}
			var m *ccl.MismatchError
			_, err := ccl.Recv(bg, g[1], make([]int32, 89), 0, 5)
			require.ErrorAs(t, err, &m)
			require.Equal(t, "ccl: recv of 89 int32 at LINE, rank 1: from rank 0, tag 5: "+
				"ranks disagree on count: sent 90 on rank 0; expected 89 on rank 1", withoutLines(err))
			_, err = ccl.Recv(bg, g[1], make([]float32, 90), 0, 5)
			require.ErrorAs(t, err, &m)
			require.Equal(t, "dtype", m.Field)
			got := make([]int32, 90)
			_, err = ccl.Recv(bg, g[1], got, ccl.AnySource, 5)
			require.NoError(t, err)
			require.Equal(t, numbers(1, 90), got)
			require.NoError(t, w.Wait(bg))
		}
		allSum(t, g, 10)
	})
}

func TestMessagesRefused(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var bad *ccl.InvalidArgumentError
		x := []int32{1}
		require.ErrorAs(t, ccl.Send(bg, g[0], x, 2, 0), &bad)
		require.ErrorAs(t, ccl.Send(bg, g[0], x, ccl.AnySource, 0), &bad)
		require.ErrorAs(t, ccl.Send(bg, g[0], x, 1, -1), &bad)
		_, err := ccl.Recv(bg, g[0], x, -1, 0)
		require.ErrorAs(t, err, &bad)
		_, err = ccl.SendRecv(bg, g[0], x, 1, x, 1, 0)
		require.ErrorAs(t, err, &bad)
		require.ErrorAs(t, ccl.Irecv(bg, g[0], x, 3, 0).Wait(bg), &bad)
		require.ErrorIs(t, ccl.Isend[int32](bg, nil, x, 0, 0).Wait(bg), ccl.ErrInvalidCommunicator)
		allSum(t, g, 10)
	})
}

// A receive without a message ends by its timeout or context, and the group lives.
func TestRecvGivesUp(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		_, err := ccl.Recv(bg, g[0], make([]int32, 1), 2, 0, ccl.WithTimeout(10*time.Millisecond))
		var late *transport.TimeoutError
		require.ErrorAs(t, err, &late)
		require.Equal(t, []int{2}, late.Behind)
		var failed *ccl.CollectiveFailedError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 2, failed.Awaited)
		w := ccl.Irecv(bg, g[0], make([]int32, 1), ccl.AnySource, 0, ccl.WithTimeout(10*time.Millisecond))
		require.ErrorAs(t, w.Wait(bg), &late)
		require.Equal(t, []int{1, 2}, late.Behind)
		require.ErrorAs(t, w.Err(), &failed)
		require.Equal(t, -1, failed.Awaited, "it could be any rank's")

		ctx, cancel := context.WithCancel(bg)
		w = ccl.Irecv(ctx, g[0], make([]int32, 1), 1, 0)
		other := ccl.Irecv(bg, g[0], make([]int32, 1), 1, 0)
		cancel()
		require.ErrorIs(t, w.Wait(bg), context.Canceled)
		_, err = ccl.Recv(ctx, g[0], make([]int32, 1), 1, 0)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, ccl.Send(bg, g[1], []int32{1}, 0, 0))
		require.NoError(t, other.Wait(bg))
		allSum(t, g, 10)
	})
}

// told is a context that tells when a goroutine begins to wait for it.
type told struct {
	context.Context
	waits chan struct{}
}

func newTold() *told { return &told{bg, make(chan struct{}, 2)} }

func (c *told) Done() <-chan struct{} {
	select {
	case c.waits <- struct{}{}:
	default:
	}
	return make(chan struct{})
}

// A rank that waits for the Work of a message waits for the message's other rank, as it does in Send and Recv. One
// that has started a message and does other things does not.
func TestAwaitedWork(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for name, start := range map[string]func(ctx context.Context, c *ccl.Communicator) *ccl.Work{
			"send": func(ctx context.Context, c *ccl.Communicator) *ccl.Work {
				return ccl.Isend(ctx, c, numbers(0, 100_000), 1, 0)
			},
			"receive": func(ctx context.Context, c *ccl.Communicator) *ccl.Work {
				return ccl.Irecv(ctx, c, make([]int32, 1), 1, 0)
			},
		} {
			for _, waits := range []bool{true, false} {
				g := group(t, connect, 2)
				ctx, cancel := context.WithCancel(bg)
				w := start(ctx, g[0])
				wait, ended := newTold(), make(chan error, 1)
				if waits {
					go func() { ended <- w.Wait(wait) }()
					<-wait.waits
				}
				cancel()
				<-w.Done()
				err := w.Err()
				var failed *ccl.CollectiveFailedError
				require.ErrorAs(t, err, &failed, name)
				if waits {
					var waited *ccl.CallError
					require.ErrorAs(t, <-ended, &waited)
					require.Same(t, failed, waited.Err)
				}
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 1, failed.Peer)
				require.Equal(t, map[bool]int{true: 1, false: -1}[waits], failed.Awaited, "%s, waited for: %v", name, waits)
			}
		}
	})
}

// Receives from a rank that leaves fail with PeerLostError; what it sent before it left arrives.
func TestMessagesOfTheLost(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		first, second := ccl.Irecv(bg, g[0], make([]int32, 1), 2, 0), ccl.Irecv(bg, g[0], make([]int32, 1), 2, 0)
		require.NoError(t, ccl.Send(bg, g[2], []int32{1}, 0, 0))
		require.NoError(t, g[2].Close())
		require.NoError(t, first.Wait(bg))
		var lost *transport.PeerLostError
		require.ErrorAs(t, second.Wait(bg), &lost)
		require.Equal(t, 2, lost.Rank)
		any := ccl.Irecv(bg, g[0], make([]int32, 1), ccl.AnySource, 0)
		require.NoError(t, ccl.Send(bg, g[1], []int32{1}, 0, 0), "rank 1 is still there")
		require.NoError(t, any.Wait(bg))
		require.ErrorAs(t, ccl.Send(bg, g[0], numbers(0, 1000), 2, 0), &lost)
	})
}

// A receive from any rank lives on when a rank leaves, as long as another one is there. Its timeout names those that have left, and those
// that wait for it: directly, or for a rank that does.
func TestAnySourceAfterDepartures(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 4)
		waits := []*ccl.Work{ccl.Irecv(bg, g[1], make([]int32, 1), 2, 0), ccl.Irecv(bg, g[2], make([]int32, 1), 3, 0)}
		require.NoError(t, g[0].Close())
		late := &transport.TimeoutError{}
		receive := func() (err error) {
			_, err = ccl.Recv(bg, g[3], make([]int32, 1), ccl.AnySource, 0, ccl.WithTimeout(20*time.Millisecond))
			require.ErrorAs(t, err, &late)
			return err
		}
		err := receive()
		for len(late.Waiting) < 2 { // a rank counts as waiting once it sleeps
			err = receive()
		}
		require.Equal(t, []int{0}, late.Left)
		require.Equal(t, []int{0}, late.Behind)
		require.Equal(t, []int{1, 2}, late.Waiting)
		require.ErrorContains(t, err, "from any rank, tag 0: timed out after 20ms: "+
			"rank 3 waited for rank 0; rank 0 has left the group; ranks 1, 2 wait for rank 3")

		require.NoError(t, ccl.Send(bg, g[3], []int32{1}, 2, 0))
		require.NoError(t, waits[1].Wait(bg))
		any := ccl.Irecv(bg, g[3], make([]int32, 1), ccl.AnySource, 0)
		require.NoError(t, ccl.Send(bg, g[2], []int32{1}, 3, 0))
		require.NoError(t, any.Wait(bg))
		any = ccl.Irecv(bg, g[3], make([]int32, 1), ccl.AnySource, 0)
		require.NoError(t, g[2].Close())
		_ = g[1].Close() // it drops its receive
		var lost *transport.PeerLostError
		err = any.Wait(bg)
		require.ErrorAs(t, err, &lost)
		require.Equal(t, []int{0, 1, 2}, lost.Left)
		require.ErrorContains(t, err, "from any rank, tag 0: peer lost: ranks 0-2 have left the group")
	})
}

// A receive from any rank warns after half of its timeout if ranks cannot send. Without a timeout it does so again and again.
func TestAnySourceWarns(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		logger, written := logged(slog.LevelWarn)
		g := join(t, connect, settings(t, 3, 40*time.Millisecond, nil), logger)
		require.NoError(t, g[0].Close())
		for _, timeout := range []time.Duration{-1, time.Minute} {
			any := ccl.Irecv(bg, g[2], make([]int32, 1), ccl.AnySource, 0, ccl.WithTimeout(timeout), ccl.WithLabel("next"))
			for timeout < 0 && len(written.lines(t, "a receive from any rank that has no timeout still waits")) < 2 {
				runtime.Gosched()
			}
			require.NoError(t, ccl.Send(bg, g[1], []int32{1}, 2, 0))
			require.NoError(t, any.Wait(bg))
		}
		line := written.lines(t, "a receive from any rank that has no timeout still waits")[0]
		require.Equal(t, "next", line["label"])
		require.Equal(t, []any{0.0}, line["left"])
		any := ccl.Irecv(bg, g[2], make([]int32, 1), ccl.AnySource, 0)
		require.Error(t, any.Wait(bg))
		require.Len(t, written.lines(t, "a receive from any rank has waited for half of its timeout"), 1)
	})
}

// The failure of the group ends all sends and receives, and so does Close.
func TestMessagesEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		works := []*ccl.Work{
			ccl.Irecv(bg, g[0], make([]int32, 1), 2, 0), ccl.Irecv(bg, g[1], make([]int32, 1), 0, 0),
			ccl.Isend(bg, g[2], numbers(1, 10_000), 1, 1),
		}
		g[1].Abort(errors.New("had enough"))
		for _, w := range works {
			var aborted *transport.AbortedError
			require.ErrorAs(t, w.Wait(bg), &aborted)
			require.Equal(t, 1, aborted.By)
		}
		require.ErrorContains(t, ccl.Send(bg, g[0], []int32{1}, 1, 0), "had enough")

		g = group(t, connect, 2)
		w := ccl.Irecv(bg, g[0], make([]int32, 1), 1, 0)
		requireUnfinished(t, ccl.UnfinishedError{Receives: 1}, g[0].Close())
		require.ErrorIs(t, w.Wait(bg), ccl.ErrClosed)
		require.ErrorIs(t, ccl.Send(bg, g[0], []int32{1}, 1, 0), ccl.ErrClosed)
	})
	for deadline := time.Now().Add(patient); runtime.NumGoroutine() > before; runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "%d goroutines more", runtime.NumGoroutine()-before)
	}
}

// A send that fails the group when its context ends also ends the receives in which other
// goroutines are blocked.
func TestOneTimeIsUpForAll(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for range 20 {
			ctx, cancel := context.WithCancel(bg)
			put := func(int) { time.AfterFunc(time.Millisecond, cancel) } // by then receives are blocked, or most
			g := group(t, tap(connect, &taps{put: put}), 2)
			first := ccl.Isend(ctx, g[0], numbers(1, 5000), 1, 1) // never received
			errs := each(20, func(i int) error {
				_, err := ccl.Recv(bg, g[0], make([]int32, 1), 1, 2)
				return err
			})
			require.ErrorIs(t, first.Wait(bg), context.Canceled)
			for _, err := range errs {
				require.ErrorIs(t, err, context.Canceled)
			}
			cancel()
		}
	})
}

// Close during receives of other goroutines ends all of them.
func TestCloseAmongMessages(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for range 30 {
			g := group(t, connect, 2)
			errs := each(5, func(i int) error {
				if i == 0 {
					return g[0].Close()
				}
				_, err := ccl.Recv(bg, g[0], make([]int32, 1), 1, i)
				if !errors.Is(err, ccl.ErrClosed) {
					return fmt.Errorf("the receive ended with %w", err)
				}
				return nil
			})
			require.NoError(t, errors.Join(errs...))
		}
	})
}

// RecvBytes receives any length, from the rank itself too, and from the unexpected queue. A
// message above the limit stays for the next receive.
func TestRecvBytes(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var sends []*ccl.Work
		text := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 30*i) }
		for i := range 5 {
			sends = append(sends, ccl.Isend(bg, g[0], text(i), 1, 0), ccl.Isend(bg, g[1], text(i), 1, 1))
		}
		sends = append(sends, ccl.Isend(bg, g[0], numbers(1, 1), 1, 2))
		var m *ccl.MismatchError
		_, _, err := ccl.RecvBytes(bg, g[1], 0, 2, 1000) // the others are in the unexpected queue
		require.ErrorAs(t, err, &m)
		require.Equal(t, "dtype", m.Field)
		_, err = ccl.Recv(bg, g[1], make([]int32, 1), 0, 2)
		require.NoError(t, err)
		for i := range 5 {
			for tag, from := range []int{0, 1} {
				if i > 0 {
					_, _, err := ccl.RecvBytes(bg, g[1], from, tag, 30*i-1)
					require.ErrorAs(t, err, &m)
					require.Equal(t, "count", m.Field)
				}
				got, source, err := ccl.RecvBytes(bg, g[1], from, tag, 30*i)
				require.NoError(t, err)
				require.Equal(t, from, source)
				require.True(t, bytes.Equal(text(i), got))
			}
		}
		for _, w := range sends {
			require.NoError(t, w.Wait(bg))
		}
	})
}

// Where ranks wait for each other's messages in a chain, the TimeoutError of every rank names
// the rank at its end, whichever rank times out first and whoever has given up before.
func TestLateMessagesBlameTheEndOfTheChain(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		const n, missing = 4, 2
		for _, first := range []int{0, 1, 3, missing} { // all at once
			g := group(t, connect, n)
			errs := each(n, func(r int) error {
				if r == missing {
					return nil
				}
				limit := 150 * time.Millisecond
				if r == first {
					limit = 100 * time.Millisecond
				}
				for i := range 20 {
					_, err := ccl.SendRecv(bg, g[r], numbers(r, 300), (r+1)%n, make([]int32, 300), (r+n-1)%n, i, ccl.WithTimeout(limit))
					if err != nil {
						return err
					}
				}
				return nil
			})
			for r, err := range errs {
				if r == missing {
					continue
				}
				var late *transport.TimeoutError
				require.ErrorAs(t, err, &late, "rank %d", r)
				require.Equal(t, []int{missing}, late.Behind, "rank %d of those that wait, rank %d first: %v", r, first, err)
				var failed *ccl.CollectiveFailedError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, missing, failed.Peer)
			}
		}
	})
}

// A rank whose receive timed out counts as waiting for its sender until its next call of any
// kind.
func TestWhoGaveUpIsBlamedAfterItsNextCall(t *testing.T) {
	for name, next := range map[string]struct {
		call   func(g []*ccl.Communicator) error // of rank 1
		blamed int
	}{
		"none": {func([]*ccl.Communicator) error { return nil }, 2},
		"a message that is there": {func(g []*ccl.Communicator) error {
			_, err := ccl.Recv(bg, g[1], make([]int32, 1), 0, 7)
			return err
		}, 1},
		"a message that has to come": {func(g []*ccl.Communicator) error {
			w := ccl.Irecv(bg, g[1], make([]int32, 1), 0, 8)
			return errors.Join(ccl.Send(bg, g[0], []int32{1}, 1, 8), w.Wait(bg))
		}, 1},
		"a message whose context ends": {func(g []*ccl.Communicator) error {
			ctx, cancel := context.WithCancel(bg)
			w := ccl.Irecv(ctx, g[1], make([]int32, 1), 2, 0)
			cancel()
			if err := w.Wait(bg); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		}, 1},
		"a collective": {func(g []*ccl.Communicator) error {
			return errors.Join(each(3, func(r int) error { return sum(g[r], 10) })...)
		}, 1},
		"a collective that it refuses": {func(g []*ccl.Communicator) error {
			err := ccl.AllReduce(bg, g[1], make([]float32, 1), make([]float32, 2), ccl.Sum)
			if _, refused := errors.AsType[*ccl.InvalidBufferSizeError](err); !refused {
				return fmt.Errorf("the call returned %w", err)
			}
			return nil
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, func(t *testing.T, connect connector) {
				g := group(t, connect, 3)
				for _, tag := range []int{7, 9} {
					_ = ccl.Isend(bg, g[0], []int32{1}, 1, tag)
				}
				_, err := ccl.Recv(bg, g[1], make([]int32, 1), 0, 9) // sent after the one with tag 7: that has arrived, too
				require.NoError(t, err)
				var late *transport.TimeoutError
				_, err = ccl.Recv(bg, g[1], make([]int32, 1), 2, 0, ccl.WithTimeout(20*time.Millisecond))
				require.ErrorAs(t, err, &late)
				require.NoError(t, next.call(g))
				_, err = ccl.Recv(bg, g[0], make([]int32, 1), 1, 0, ccl.WithTimeout(20*time.Millisecond))
				require.ErrorAs(t, err, &late)
				require.Equal(t, []int{next.blamed}, late.Behind)
			})
		})
	}
}

// A receive from AnySource gets the message that entered the unexpected queue first, whichever
// rank sent it.
func TestAnySourceTakesEarlyMessagesAsTheyCame(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 4)
		order := []int{3, 1, 2, 1, 3}
		var sends []*ccl.Work
		for i, from := range order {
			sends = append(sends, ccl.Isend(bg, g[from], numbers(i, 2), 0, 5), ccl.Isend(bg, g[from], numbers(i, 1), 0, 9))
			_, err := ccl.Recv(bg, g[0], make([]int32, 1), from, 9)
			require.NoError(t, err)
		}
		for i, from := range order {
			got := make([]int32, 2)
			source, err := ccl.Recv(bg, g[0], got, ccl.AnySource, 5)
			require.NoError(t, err)
			require.Equal(t, from, source)
			require.Equal(t, numbers(i, 2), got)
		}
		for _, w := range sends {
			require.NoError(t, w.Wait(bg))
		}
	})
}

// The timeout of a receive says which other messages have come.
func TestReceiveShowsOtherTags(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		x := make([]int32, 1)
		sends := []*ccl.Work{ccl.Isend(bg, g[0], x, 1, 5), ccl.Isend(bg, g[0], x, 1, 7), ccl.Isend(bg, g[0], x, 1, 5)}
		require.Eventually(t, func() bool {
			_, err := ccl.Recv(bg, g[1], x, 0, 4, ccl.WithTimeout(20*time.Millisecond))
			return strings.Contains(err.Error(), ": from rank 0, tag 4 (messages of tags [5 7] have come): timed out after 20ms: rank 1 waited for rank 0 (to wait")
		}, patient, time.Millisecond)
		for _, tag := range []int{5, 7, 5} {
			_, err := ccl.Recv(bg, g[1], x, 0, tag)
			require.NoError(t, err)
		}
		for _, w := range sends {
			require.NoError(t, w.Wait(bg))
		}
	})
}

// In a circle of sends each rank says for whom it waited itself when one of them gave up.
func TestCircleOfSends(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		errs := each(3, func(r int) error {
			timeout := patient
			if r == 1 {
				timeout = 500 * time.Millisecond
			}
			return ccl.Send(bg, g[r], make([]float32, 1<<20), (r+1)%3, 0, ccl.WithTimeout(timeout))
		})
		require.Contains(t, errs[1].Error(), "rank 1: to rank 2, tag 0: timed out after 500ms: rank 1 waited for rank ")
		require.Contains(t, errs[0].Error(), "rank 0: to rank 1, tag 0: rank 0 waited for rank 1 when the group failed: timed out after 500ms: rank 1 waited for rank ")
		require.Contains(t, errs[2].Error(), "rank 2: to rank 0, tag 0: rank 2 waited for rank 0 when the group failed: timed out after 500ms: rank 1 waited for rank ")
	})
}
