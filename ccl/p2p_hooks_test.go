package ccl_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// Tests that stop the message engine at a chosen step: hooks in transport.P2P call them back.

// taps are called by the P2P of one rank; nil ones are not.
type taps struct {
	put      func(to int)            // after TryPut
	view     func(from int)          // after TryNext; nothing of the view has been copied
	take     func(from int)          // before Take
	withdraw func(to int, free bool) // after TryWithdraw
	behind   func()                  // before Behind
}

type tapped struct {
	transport.Endpoint
	p2p tappedP2P
}

func (ep *tapped) P2P() transport.P2P { return &ep.p2p }

type tappedP2P struct {
	transport.P2P
	taps *taps
}

func (l *tappedP2P) TryPut(to int, m *transport.Message) (int, bool, error) {
	n, ok, err := l.P2P.TryPut(to, m)
	if ok && l.taps.put != nil {
		l.taps.put(to)
	}
	return n, ok, err
}

func (l *tappedP2P) TryNext(from int) (transport.Message, bool, error) {
	view, ok, err := l.P2P.TryNext(from)
	if ok && l.taps.view != nil {
		l.taps.view(from)
	}
	return view, ok, err
}

func (l *tappedP2P) Behind(peer int) int {
	if l.taps.behind != nil {
		l.taps.behind()
	}
	return l.P2P.Behind(peer)
}

func (l *tappedP2P) Take(from int) {
	if l.taps.take != nil {
		l.taps.take(from)
	}
	l.P2P.Take(from)
}

func (l *tappedP2P) TryWithdraw(to int) (taken, ok bool) {
	taken, ok = l.P2P.TryWithdraw(to)
	if l.taps.withdraw != nil {
		l.taps.withdraw(to, ok)
	}
	return taken, ok
}

// tap connects ranks so that the P2P of rank i calls taps[i].
func tap(connect connector, taps ...*taps) connector {
	return func(ranks int) ([]transport.Endpoint, error) {
		eps, err := connect(ranks)
		for i := range eps {
			if i < len(taps) && taps[i] != nil {
				eps[i] = &tapped{eps[i], tappedP2P{eps[i].P2P(), taps[i]}}
			}
		}
		return eps, err
	}
}

// gate is a channel that may be closed several times.
type gate struct {
	sync.Once
	open chan struct{}
}

func newGate() *gate    { return &gate{open: make(chan struct{})} }
func (g *gate) Open()   { g.Do(func() { close(g.open) }) }
func (g *gate) Waited() { <-g.open }

// Close withdraws messages that have not been received: their buffers belong to the caller
// again, and no receive gets what the caller then writes to them.
func TestCloseTakesMessagesBack(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		put := newGate()
		g := group(t, tap(connect, &taps{put: func(int) { put.Open() }}), 2)
		buf := numbers(1, 4)
		w := ccl.Isend(bg, g[0], buf, 1, 0)
		put.Waited()
		requireUnfinished(t, ccl.UnfinishedError{Sends: 1}, g[0].Close())
		require.ErrorIs(t, w.Wait(bg), ccl.ErrClosed)
		copy(buf, numbers(2, 4))
		got := make([]int32, 4)
		_, err := ccl.Recv(bg, g[1], got, 0, 0)
		if g[0].Transport() == "shm" { // the message is a copy there
			require.NoError(t, err)
			require.Equal(t, numbers(1, 4), got)
			return
		}
		var lost *transport.PeerLostError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, 0, lost.Rank)
	})
}

// Close returns at once while the rank copies a message. A send to a rank that leaves ends when
// that rank no longer reads the buffer; it succeeds if that rank has received the message.
func TestSendToOneThatLeavesWhileItCopies(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		viewed, goOn, asked := newGate(), newGate(), newGate()
		t.Cleanup(goOn.Open)
		copying := false // not atomic: the race detector proves that the buffer's users are ordered
		g := group(t, tap(connect,
			&taps{withdraw: func(_ int, free bool) { asked.Open() }},
			&taps{view: func(int) { viewed.Open(); goOn.Waited(); copying = true }}), 2)
		buf, got := numbers(1, 4), make([]int32, 4)
		received := ccl.Irecv(bg, g[1], got, 0, 0)
		sent := make(chan error, 1)
		go func() {
			err := ccl.Send(bg, g[0], buf, 1, 0)
			copy(buf, numbers(2, 4)) // allowed again
			sent <- err
		}()
		viewed.Waited()
		closed := make(chan error, 1)
		go func() { closed <- g[1].Close() }()
		var left error
		select {
		case left = <-closed:
		case <-time.After(patient / 4):
			require.Fail(t, "Close waits for a message that is being copied")
		}
		if g[0].Transport() == "local" {
			select {
			case err := <-sent:
				require.Failf(t, "the send returned while rank 1 was looking at its buffer", "%v", err)
			case <-asked.open:
			}
		}
		goOn.Open()
		err := <-sent
		requireUnfinished(t, ccl.UnfinishedError{Receives: 1}, left)
		require.NoError(t, received.Wait(bg))
		require.Equal(t, numbers(1, 4), got)
		if g[0].Transport() == "local" {
			require.NoError(t, err)
			require.True(t, copying)
		}
	})
}

// If the sender is lost in the middle of a message, the receive fails with PeerLostError, also
// one from AnySource, and the rest of the message is not taken for a message.
func TestLostInTheMiddleOfAMessage(t *testing.T) {
	for _, from := range []int{0, ccl.AnySource} {
		var sender transport.Endpoint
		g := group(t, func(n int) ([]transport.Endpoint, error) {
			eps, err := shm.NewHeap(n, shm.SmallestGeometry(n))
			sender = eps[0]
			return eps, err
		}, 3)
		whole := numbers(1, 40) // of several parts
		m := transport.Message{
			Bytes: bytesOf(whole), Total: 160, Seq: 7, Clock: uint32(ccl.Int32),
		}
		put := func() (moved bool) {
			n, ok, err := sender.P2P().TryPut(1, &m)
			require.NoError(t, err)
			m.Bytes = m.Bytes[n:]
			return ok && len(m.Bytes) > 0
		}
		require.True(t, put(), "the first part is not all of it")
		require.NoError(t, sender.Close())
		var lost *transport.PeerLostError
		_, err := ccl.Recv(bg, g[1], make([]int32, len(whole)), from, 7)
		require.ErrorAs(t, err, &lost)
		require.Equal(t, 0, lost.Rank)
		works := make([]*ccl.Work, 12)
		for i := range works { // it sends on until it notices
			for put() {
			}
			works[i] = ccl.Irecv(bg, g[1], make([]int32, len(whole)), 0, 7)
			require.ErrorAs(t, works[i].Wait(bg), &lost, "the rest of the message was received")
		}
	}
}

func bytesOf(x []int32) (b []byte) {
	for _, v := range x {
		b = binary.NativeEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// incomparable is a context of a type that cannot be compared.
type incomparable struct {
	context.Context
	_ []int
}

// Contexts of types that cannot be compared work like others.
func TestMessagesUnderIncomparableContexts(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		base, cancel := context.WithCancel(bg)
		ctx := incomparable{Context: base}
		var works []*ccl.Work
		for range 3 {
			works = append(works, ccl.Irecv(ctx, g[1], make([]int32, 1), 0, 0))
		}
		require.NoError(t, ccl.Send(ctx, g[0], []int32{1}, 1, 0))
		require.NoError(t, works[0].Wait(ctx))
		cancel()
		require.ErrorIs(t, works[1].Wait(bg), context.Canceled)
		require.ErrorIs(t, works[2].Wait(bg), context.Canceled)
	})
}

// overwritten is an endpoint one of whose methods panics with a ProtocolError, as if it had
// found a word in shared memory that no rank has written.
type overwritten struct {
	transport.Endpoint
	p2p overwrittenP2P
	in  string // which method
}

type overwrittenP2P struct {
	transport.P2P
	ep *overwritten
}

func (ep *overwritten) Vanished(any) error { return nil }
func (ep *overwritten) P2P() transport.P2P { return &ep.p2p }

func (ep *overwritten) touch(in string) {
	if ep.in == in {
		panic(&transport.ProtocolError{Peer: 1, Text: "its word was overwritten"})
	}
}

func (ep *overwritten) Next(from int) (transport.Message, error) {
	ep.touch("next")
	return ep.Endpoint.Next(from)
}

func (ep *overwritten) Take(from int) {
	ep.touch("take")
	ep.Endpoint.Take(from)
}

func (ep *overwritten) Staging() transport.Staging {
	ep.touch("staging")
	return ep.Endpoint.Staging()
}

func (l *overwrittenP2P) TryNext(from int) (transport.Message, bool, error) {
	l.ep.touch("p2p next")
	return l.P2P.TryNext(from)
}

func (l *overwrittenP2P) TryPut(to int, m *transport.Message) (int, bool, error) {
	l.ep.touch("p2p put")
	return l.P2P.TryPut(to, m)
}

// Shared memory that something else has written to fails the group, wherever it is found: in a
// kernel, in the engine, by the goroutine that makes progress on messages. The process lives.
func TestOverwrittenMemory(t *testing.T) {
	for in, use := range map[string]func(c *ccl.Communicator) error{
		"next":    func(c *ccl.Communicator) error { return sum(c, 100, ccl.WithAlgorithm("ring")) },
		"take":    func(c *ccl.Communicator) error { return sum(c, 100, ccl.WithAlgorithm("ring")) },
		"staging": func(c *ccl.Communicator) error { return sum(c, 1000) },
		"p2p next": func(c *ccl.Communicator) error {
			return ccl.Irecv(bg, c, make([]int32, 1), 1-c.Rank(), 0).Wait(bg)
		},
		"p2p put": func(c *ccl.Communicator) error {
			if c.Rank() == 1 {
				_, err := ccl.Recv(bg, c, make([]int32, 2), 0, 0)
				return err
			}
			return ccl.Send(bg, c, make([]int32, 2), 1, 0)
		},
	} {
		t.Run(in, func(t *testing.T) {
			var bad *overwritten
			g := group(t, func(n int) ([]transport.Endpoint, error) {
				eps, err := shm.NewHeap(n, shm.SmallestGeometry(n))
				bad = &overwritten{Endpoint: eps[0]}
				bad.p2p = overwrittenP2P{eps[0].P2P(), bad}
				eps[0] = bad
				return eps, err
			}, 2)
			bad.in = in
			errs := each(2, func(r int) error { return use(g[r]) })
			for r, err := range errs {
				var failed *ccl.CollectiveFailedError
				require.ErrorAs(t, err, &failed, "rank %d", r)
				require.ErrorContains(t, err, "its word was overwritten")
			}
			var found *transport.ProtocolError
			require.ErrorAs(t, errs[0], &found)
			var aborted *transport.AbortedError
			require.ErrorAs(t, errs[1], &aborted)
			require.Equal(t, 0, aborted.By)
		})
	}
}

// A recorded failure with impossible contents still fails the group.
func TestOverwrittenFailures(t *testing.T) {
	for _, f := range []transport.Failure{
		{Kind: transport.FailurePeerLost}, {Kind: transport.FailureRejected}, {Kind: transport.FailurePeerLost, Ranks: []int{-1}},
		{Kind: transport.FailureRejected, Ranks: []int{1 << 15}}, {Kind: transport.FailureRejected, Ranks: []int{0}, Missing: []int{9}},
		{Kind: transport.FailureOverlap, Ranks: []int{7}}, {Kind: 1 << 31, By: 65000}, {},
	} {
		var eps []transport.Endpoint
		g := group(t, func(n int) (_ []transport.Endpoint, err error) {
			eps, err = shm.NewHeap(n, shm.SmallestGeometry(n))
			return eps, err
		}, 2)
		eps[0].Fail(&f)
		var aborted *transport.AbortedError
		require.ErrorAs(t, sum(g[1], 10), &aborted, "%+v", f)
		require.ErrorAs(t, ccl.Send(bg, g[1], []int32{1}, 0, 0), &aborted, "%+v", f)
		require.ErrorAs(t, g[1].Err(), &aborted)
	}
}

// Drain reports a receive that was posted while its message was arriving, and then failed.
func TestDrainOfReceiveThatFailedInMidMessage(t *testing.T) {
	coming, goOn := newGate(), newGate()
	g := group(t, tap(func(n int) ([]transport.Endpoint, error) { return shm.NewHeap(n, shm.SmallestGeometry(n)) },
		&taps{put: func(int) { goOn.Waited() }}, &taps{take: func(int) { coming.Open() }}), 2)
	other := ccl.Irecv(bg, g[1], make([]int32, 1), 0, 9)
	send := ccl.Isend(bg, g[0], numbers(0, 3000), 1, 1)
	coming.Waited() // its first part
	w := ccl.Irecv(bg, g[1], make([]int32, 5), 0, 1)
	goOn.Open()
	<-w.Done()
	err := g[1].Drain(bg)
	var mismatch *ccl.MismatchError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, "count", mismatch.Field)
	var unfinished *ccl.UnfinishedError
	require.ErrorAs(t, err, &unfinished)
	require.Equal(t, ccl.UnfinishedError{Receives: 1, Works: unfinished.Works}, *unfinished)
	_, err = ccl.Recv(bg, g[1], make([]int32, 3000), 0, 1)
	require.NoError(t, err)
	require.NoError(t, send.Wait(bg))
	require.NoError(t, ccl.Send(bg, g[0], []int32{1}, 1, 9))
	require.NoError(t, other.Wait(bg))
}

// If the group fails while a rank that has timed out looks for the rank to blame, the error is
// the group's failure: ranks that have heard of it no longer wait for others.
func TestFailsWhileARankBlames(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		var g []*ccl.Communicator
		g = group(t, tap(connect, &taps{behind: func() { g[2].Abort(errors.New("had enough")) }}), 3)
		_, err := ccl.Recv(bg, g[0], make([]int32, 1), 1, 0, ccl.WithTimeout(10*time.Millisecond))
		var aborted *transport.AbortedError
		require.ErrorAs(t, err, &aborted)
		require.Equal(t, 2, aborted.By)
	})
}
