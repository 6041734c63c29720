package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// halting is an endpoint whose rank halts where it reads another rank's data: a payload, or a
// staged copy of the last piece.
type halting struct {
	transport.Endpoint
	halt   func(turn int)
	toFlip func(turn int) // it is about to flip
	turn   int
	staged bool // Enter was the first turn
}

func (h *halting) Enter(e *transport.Arrival) (transport.Role, error) {
	h.turn, h.staged = 0, e.Staged
	return h.Endpoint.Enter(e)
}

func (h *halting) Payload(rank, n int) []byte {
	if rank != h.Rank() {
		h.halt(0)
	}
	return h.Endpoint.Payload(rank, n)
}

func (h *halting) Staging() transport.Staging {
	if s := h.Endpoint.Staging(); s != nil {
		return haltingStaging{s, h}
	}
	return nil
}

type haltingStaging struct {
	transport.Staging
	h *halting
}

func (s haltingStaging) Flip() error {
	s.h.turn++
	if s.h.toFlip != nil {
		s.h.toFlip(s.h.turn)
	}
	return s.Staging.Flip()
}

func (s haltingStaging) Input(rank, n int) []byte {
	s.h.halt(s.h.turn)
	return s.Staging.Input(rank, n)
}

// viewCalls are calls by views, with inputs of n elements or n for each rank.
var viewCalls = map[string]func(ctx context.Context, c *ccl.Communicator, n int) error{
	"all-reduce": func(ctx context.Context, c *ccl.Communicator, n int) error {
		x := slices.Repeat([]float32{1}, n)
		if err := ccl.AllReduce(ctx, c, x, x, ccl.Sum); err != nil {
			return err
		}
		return holds(x, float32(c.Size()))
	},
	"all-gather": func(ctx context.Context, c *ccl.Communicator, n int) error {
		recv := make([]float32, c.Size()*n)
		if err := ccl.AllGather(ctx, c, slices.Repeat([]float32{1}, n), recv); err != nil {
			return err
		}
		return holds(recv, 1)
	},
	"reduce-scatter": func(ctx context.Context, c *ccl.Communicator, n int) error {
		recv := make([]float32, n)
		if err := ccl.ReduceScatter(ctx, c, slices.Repeat([]float32{1}, c.Size()*n), recv, ccl.Avg); err != nil {
			return err
		}
		return holds(recv, 1)
	},
	"scan": func(ctx context.Context, c *ccl.Communicator, n int) error {
		recv := make([]float32, n)
		if err := ccl.Scan(ctx, c, slices.Repeat([]float32{1}, n), recv, ccl.Sum); err != nil {
			return err
		}
		return holds(recv, float32(c.Rank()+1))
	},
}

// A call that ends with a round of copies succeeds on all ranks or on none, also where a rank has given
// up the wait for the last one, because its context has ended or the group was aborted. The next call
// fails on all.
func TestLastRoundAfterFailure(t *testing.T) {
	const ranks = 3
	piece := shm.SmallestGeometry(ranks).Piece
	ways := []string{"the context of rank 0 ends", "the last rank aborts", "the last rank fails as well"}
	for name, call := range viewCalls {
		for _, bytes := range []int{piece, 3 * piece} {
			for way, what := range ways {
				t.Run(fmt.Sprintf("%s/%d/%s", name, bytes, what), func(t *testing.T) {
					eps, err := shm.NewHeap(ranks, shm.SmallestGeometry(ranks))
					require.NoError(t, err)
					late := &halting{Endpoint: eps[ranks-1], halt: func(int) {}}
					eps[ranks-1] = late
					group := join(t, func(int) ([]transport.Endpoint, error) { return eps, nil }, settings(t, ranks, patient, nil))

					// The same call is made once before, to learn how many rounds it has.
					require.NoError(t, errors.Join(each(ranks, func(r int) error { return call(bg, group[r], bytes/4) })...))
					last := late.turn
					if late.staged && last == 1 {
						t.Skip("its only round is that of Enter")
					}

					ctx, cancel := context.WithCancel(bg)
					defer cancel()
					late.toFlip = func(turn int) {
						if turn != last {
							return
						}
						if way == 1 {
							group[ranks-1].Abort(errors.New("enough"))
						} else {
							cancel()
						}
						for group[ranks-1].Err() == nil { // rank 0 waits for this one
							runtime.Gosched()
						}
						if way == 2 {
							panic(errors.New("before the last round"))
						}
					}
					errs := each(ranks, func(r int) error {
						return call([]context.Context{ctx, bg, bg}[r], group[r], bytes/4)
					})
					for r, err := range errs {
						if way == 2 {
							require.Error(t, err, "rank %d", r)
						} else {
							require.NoError(t, err, "rank %d", r)
						}
					}
					for _, err := range each(ranks, func(r int) error { return sum(group[r], 1) }) {
						require.ErrorIs(t, err, ccl.ErrInvalidCommunicator)
					}
				})
			}
		}
	}
}

// A call that succeeds on one rank succeeds on all, also if the group fails while another
// rank still reads payloads or the copies of the last piece: these reads touch no other rank's
// memory, and need no further wait.
func TestFailureWhileCopiesAreRead(t *testing.T) {
	const ranks = 3
	piece := shm.SmallestGeometry(ranks).Piece
	everyWorld(t, func(t *testing.T, connect connector) {
		for name, call := range viewCalls {
			for _, bytes := range []int{24, piece, 3 * piece} {
				t.Run(fmt.Sprintf("%s/%d", name, bytes), func(t *testing.T) {
					eps, err := connect(ranks)
					require.NoError(t, err)
					var (
						late   = &halting{Endpoint: eps[ranks-1], halt: func(int) {}}
						halts  = make(chan struct{}) // that rank has come to where it halts
						failed = make(chan struct{})
						last   int // turn of the call
					)
					eps[ranks-1] = late // whose block is in the last piece
					group := join(t, func(int) ([]transport.Endpoint, error) { return eps, nil }, settings(t, ranks, patient, nil))
					// The same call is made once before, to learn how many rounds it has and whether
					// it reads copies.
					looks := -1
					late.halt = func(turn int) { looks = turn }
					require.NoError(t, errors.Join(each(ranks, func(r int) error { return call(bg, group[r], bytes/4) })...))
					if looks < 0 || looks < late.turn {
						return // it touches other ranks' memory, or ends with a turn
					}
					last = late.turn
					var once bool
					late.halt = func(turn int) {
						if turn == last && !once {
							once = true
							close(halts)
							<-failed
						}
					}
					errs := each(ranks, func(r int) error {
						err := call(bg, group[r], bytes/4)
						if r == 0 {
							select {
							case <-halts:
							case <-time.After(patient):
								return errors.New("the last rank does not halt")
							}
							group[0].Abort(errors.New("after the call"))
							close(failed)
						}
						return err
					})
					require.NoError(t, errors.Join(errs...))
				})
			}
		}
	})
}

func holds(x []float32, want float32) error {
	for i, got := range x {
		if got != want {
			return fmt.Errorf("element %d of %d is %v, want %v", i, len(x), got, want)
		}
	}
	return nil
}

// The same where a group has a region, and short inputs of private buffers travel with the synchronisation: a rank
// that aborts the group, or leaves it, after its call does not fail the call of another one.
func TestEagerCallsAgree(t *testing.T) {
	const ranks = 4
	for trial := range 40 {
		eps, err := shm.NewHeap(ranks, shm.GroupGeometry(ranks))
		require.NoError(t, err)
		group := join(t, func(int) ([]transport.Endpoint, error) { return eps, nil }, settings(t, ranks, patient, nil))
		for r, err := range each(ranks, func(r int) error {
			if _, err := ccl.CreateSharedRegion[byte](bg, group[r], 100); err != nil {
				return err
			}
			err := sum(group[r], 1000)
			switch {
			case r != trial%ranks:
			case trial/ranks%2 == 0:
				group[r].Abort(errors.New("after the call"))
			default:
				_ = group[r].Close()
			}
			return err
		}) {
			require.NoError(t, err, "trial %d, rank %d", trial, r)
		}
	}
}
