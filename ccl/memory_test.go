package ccl_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// lentRecords is memory for records that notes what is done to it after Free.
type lentRecords struct {
	*flight.Heap
	ranks int
	atEnd [][]byte // the parts as of Free
	freed chan struct{}
	late  interleave.Bool // Part was called after Free
}

func (r *lentRecords) Free() error {
	for rank := range r.ranks {
		r.atEnd = append(r.atEnd, bytes.Clone(r.Heap.Part(rank)))
	}
	close(r.freed)
	return nil
}

func (r *lentRecords) Part(rank int) []byte {
	select {
	case <-r.freed:
		r.late.Store(true)
	default:
	}
	return r.Heap.Part(rank)
}

// requireUnused waits until the memory is given back, and fails the test if it is used afterwards. No method runs any more.
func (r *lentRecords) requireUnused(t *testing.T) {
	t.Helper()
	<-r.freed
	require.False(t, r.late.Load(), "read after Free")
	for rank, part := range r.atEnd {
		require.True(t, bytes.Equal(part, r.Heap.Part(rank)), "written after Free")
	}
}

// lending is an endpoint whose records lie in lentRecords.
type lending struct {
	transport.Endpoint
	records *lentRecords
}

func (ep lending) Records() (transport.Records, error) { return ep.records, nil }

// stoppingSelector calls a function when a call or a message has been checked, and next asks for its timeout.
type stoppingSelector struct {
	ccl.Selector
	next interleave.Pointer[func()]
}

func (s *stoppingSelector) Timeout() time.Duration {
	if f := s.next.Swap(nil); f != nil {
		(*f)()
	}
	return s.Selector.Timeout()
}

// lendingGroup is a group of two ranks that write flights to dir. Rank 0 has lentRecords.
func lendingGroup(t *testing.T, connect connector, dir string) ([]*ccl.Communicator, *lentRecords, *stoppingSelector) {
	eps, err := connect(2)
	require.NoError(t, err)
	records := &lentRecords{Heap: flight.NewHeap(2), ranks: 2, freed: make(chan struct{})}
	eps[0] = lending{eps[0], records}
	s := &stoppingSelector{Selector: settings(t, 2, patient, nil)}
	return recorded(t, eps, ccl.WithSelector(s), ccl.WithFlight(dir)), records, s
}

// messagesOfAllKinds are a message of each kind, of which only SendRecv ends without another call.
var messagesOfAllKinds = map[string]func(c *ccl.Communicator, to int) error{
	"Send":  func(c *ccl.Communicator, to int) error { return ccl.Send(bg, c, numbers(1, 4), to, 0) },
	"Isend": func(c *ccl.Communicator, to int) error { return ccl.Isend(bg, c, numbers(1, 4), to, 0).Wait(bg) },
	"Recv": func(c *ccl.Communicator, from int) error {
		_, err := ccl.Recv(bg, c, make([]int32, 4), from, 0)
		return err
	},
	"Irecv": func(c *ccl.Communicator, from int) error {
		return ccl.Irecv(bg, c, make([]int32, 4), from, 0).Wait(bg)
	},
	"RecvBytes": func(c *ccl.Communicator, from int) error {
		_, _, err := ccl.RecvBytes(bg, c, from, 0, 100)
		return err
	},
	"SendRecv": func(c *ccl.Communicator, other int) error {
		_, err := ccl.SendRecv(bg, c, numbers(1, 4), other, make([]int32, 4), other, 0)
		return err
	},
}

// A message whose communicator is closed between its check and its record fails, and touches no memory that Close has given back.
func TestCloseBeforeAMessageIsRecorded(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		for name, message := range messagesOfAllKinds {
			for _, peer := range []int{0, 1} {
				t.Run(name, func(t *testing.T) {
					all, records, s := lendingGroup(t, connect, t.TempDir())
					closed := false
					s.next.Store(new(func() { closed = true; require.NoError(t, all[0].Close()) }))
					require.ErrorIs(t, message(all[0], peer), ccl.ErrClosed)
					require.True(t, closed)
					records.requireUnused(t)
				})
			}
		}
	})
}

// askedContext signals that a message waits under it.
type askedContext struct {
	context.Context
	asked *gate
}

func (c askedContext) Done() <-chan struct{} {
	c.asked.Open()
	return nil
}

// A receive that Close ends writes its flight from memory that is still there.
func TestFlightOfAReceiveThatCloseEnds(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		dir := filepath.Join(t.TempDir(), "flight")
		all, records, _ := lendingGroup(t, connect, dir)
		waits := newGate()
		receive := async(func() error {
			_, err := ccl.Recv(askedContext{bg, waits}, all[0], make([]int32, 4), 1, 7)
			return err
		})
		waits.Waited()
		err := all[0].Close()
		require.True(t, err == nil || errors.As(err, new(*ccl.UnfinishedError)), "%v", err)
		require.ErrorIs(t, receive(), ccl.ErrClosed)
		records.requireUnused(t)
		d := load(t, dir)
		require.Len(t, d, 1)
		own := slices.IndexFunc(d[0].Ranks, func(r flight.Rank) bool { return r.Rank == 0 })
		require.Equal(t, "message 1, recv of 4 int32 from rank 1, tag 7 (failed)", d[0].Ranks[own].Messages[0].String())
	})
}

// goneRecords is memory that has vanished before the first record.
type goneRecords struct{ *lentRecords }

var errVanished = errors.New("it has vanished")

func (goneRecords) Part(int) []byte { panic(errVanished) }
func (goneRecords) Vanished(v any) error {
	if v == any(errVanished) {
		return errVanished
	}
	return nil
}

// guarded is an endpoint of whose memory only the records can vanish.
type guarded struct {
	transport.Endpoint
	records transport.Records
}

func (ep guarded) Records() (transport.Records, error) { return ep.records, nil }
func (ep guarded) Vanished(any) error                  { return nil }

// If the memory for records has vanished when New starts them, New fails for that reason, and gives the memory back.
func TestRecordsHaveVanished(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		eps, err := connect(2)
		require.NoError(t, err)
		records := &lentRecords{Heap: flight.NewHeap(2), ranks: 2, freed: make(chan struct{})}
		errs := each(2, func(r int) error {
			ep := eps[r]
			if r == 0 {
				ep = guarded{ep, goneRecords{records}}
			}
			c, err := ccl.New(bg, ep)
			if err == nil {
				err = c.Close()
			}
			return err
		})
		require.ErrorIs(t, errs[0], errVanished)
		require.NoError(t, errs[1])
		records.requireUnused(t)
	})
}

// A Release without a Retain takes no hold of another user: the communicator works, Close closes it, and its memory stays for whoever has
// retained it.
func TestReleaseWithoutRetain(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		all, records, _ := lendingGroup(t, connect, "")
		for range 3 {
			all[0].Release()
		}
		require.True(t, all[0].Retain())
		require.NoError(t, firstOf(onAll(all, func(c *ccl.Communicator) error { return c.Barrier(bg) })...))
		all[0].Release()
		all[0].Release()
		require.NoError(t, all[0].Close())
		require.ErrorIs(t, all[0].Barrier(bg), ccl.ErrClosed)
		all[0].Release()
		records.requireUnused(t)
	})
	new(ccl.Communicator).Release()
}
