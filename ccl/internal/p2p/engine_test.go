package p2p

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// The tests of package ccl cover matching, timeouts, departures and Close. Here are the paths
// that they cannot reach: a P2P that fails or breaks the protocol.

// group is a communicator of one engine.
type group struct{ ep transport.Endpoint }

func (g group) Closed() bool         { return false }
func (g group) FailureCause() error  { return g.ep.Failure().Cause }
func (g group) Hosts([]int) []string { return nil }
func (g group) Fault(any) error      { return nil }
func (g group) Release()             {}

// failing is an endpoint whose P2P takes nothing.
type failing struct {
	transport.Endpoint
	err error
}

type failingP2P struct {
	transport.P2P
	err error
}

func (ep failing) P2P() transport.P2P { return failingP2P{ep.Endpoint.P2P(), ep.err} }

func (l failingP2P) TryPut(int, *transport.Message) (n int, ok bool, err error) {
	return 0, false, l.err
}

// ended receives the end of one transfer.
type ended chan error

func (e ended) Ended(cause error) { e <- cause }

func (e ended) Warn(departed, waiting []int) {}

func (e ended) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-e:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the transfer does not end")
		return nil
	}
}

func engine(ep transport.Endpoint) *Engine {
	e := new(Engine)
	e.Init(ep, group{ep})
	return e
}

// start starts a transfer of rank `peer` with tag 3.
func start(e *Engine, sending bool, peer int, data []byte) ended {
	end := make(ended, 1)
	e.Start(&Transfer{Request: Request{
		Ctx: context.Background(), Sending: sending, Peer: peer, Tag: 3, Type: 1, Data: data, Owner: end,
	}})
	return end
}

// A message with more data than it announced fails the group.
func TestMessageLongerThanAnnounced(t *testing.T) {
	eps := local.New(2)
	recv := start(engine(eps[1]), false, 0, make([]byte, 16))
	_, ok, err := eps[0].P2P().TryPut(1, &transport.Message{Bytes: make([]byte, 32), Total: 16, Seq: 3, Clock: 1})
	require.NoError(t, err)
	require.True(t, ok)
	var protocol *transport.ProtocolError
	require.ErrorAs(t, recv.wait(t), &protocol)
	require.Equal(t, 0, protocol.Peer)
	require.True(t, eps[0].Failed())
}

// A send for which the transport has no memory fails alone.
func TestSendWithoutMemory(t *testing.T) {
	eps := local.New(2)
	want := &transport.AllocationFailedError{RequestedBytes: 1, Message: "no memory"}
	e := engine(failing{eps[0], want})
	require.Equal(t, error(want), start(e, true, 1, make([]byte, 16)).wait(t))
	require.False(t, eps[0].Failed())
	self := start(e, false, 0, make([]byte, 1))
	require.NoError(t, start(e, true, 0, make([]byte, 1)).wait(t))
	require.NoError(t, self.wait(t))
}

// A caller of Exchange whose transfers have ended leaves the others to a background goroutine.
func TestExchangeHandsOver(t *testing.T) {
	eps := local.New(2)
	a, b := engine(eps[0]), engine(eps[1])
	exchanged, got := make(ended, 1), make([]byte, 1)
	request := Request{Ctx: context.Background(), Peer: 1, Tag: 4, Type: 1, Data: got, Owner: exchanged}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Exchange(nil, &Transfer{Request: request})
	}()
	for running := false; !running; runtime.Gosched() {
		a.mu.Lock()
		running = a.running
		a.mu.Unlock()
	}
	background := start(a, false, 1, make([]byte, 1)) // its message comes last
	request.Sending, request.Peer, request.Data, request.Owner = true, 0, []byte{7}, make(ended, 1)
	b.Exchange(&Transfer{Request: request}, nil)
	<-done
	require.NoError(t, exchanged.wait(t))
	require.Equal(t, []byte{7}, got)
	require.NoError(t, start(b, true, 0, []byte{8}).wait(t))
	require.NoError(t, background.wait(t))
}

// A rank may still put a message while it closes. After a receive has failed because of that, no
// later receive gets the message.
func TestMessageAfterDeparture(t *testing.T) {
	for name, source := range map[string]int{"from the rank": 0, "from any": AnySource} {
		t.Run(name, func(t *testing.T) {
			eps := local.New(2)
			e := engine(eps[1])
			require.NoError(t, eps[0].Close())
			var lost *transport.PeerLostError
			require.ErrorAs(t, start(e, false, source, make([]byte, 1)).wait(t), &lost)
			_, ok, err := eps[0].P2P().TryPut(1, &transport.Message{Bytes: []byte{7}, Total: 1, Seq: 3, Clock: 1})
			require.NoError(t, err)
			require.True(t, ok)
			require.ErrorAs(t, start(e, false, 0, make([]byte, 1)).wait(t), &lost)
			require.Equal(t, 0, lost.Rank)
		})
	}
}

// A mismatch tells what arrived, and the message stays for the next receive.
func TestMismatch(t *testing.T) {
	e := engine(local.New(1)[0])
	send := start(e, true, 0, []byte{1, 2})
	var mismatch *MismatchError
	err := start(e, false, 0, make([]byte, 1)).wait(t)
	require.True(t, errors.As(err, &mismatch))
	require.EqualError(t, err, "rank 0 sent 2 bytes of type 1")
	got := make([]byte, 2)
	require.NoError(t, start(e, false, 0, got).wait(t))
	require.NoError(t, send.wait(t))
	require.Equal(t, []byte{1, 2}, got)
}

// bereft is an endpoint to which rank 0 has died.
type bereft struct{ transport.Endpoint }

type bereftP2P struct{ transport.P2P }

func (ep bereft) P2P() transport.P2P { return bereftP2P{ep.Endpoint.P2P()} }

func (l bereftP2P) Lost(peer int) error {
	if peer <= 0 {
		return &transport.PeerLostError{}
	}
	return l.P2P.Lost(peer)
}

// A rank has died when another one is in the middle of a message: a receive from any rank gets that, and only the next one fails.
func TestAnySourceGetsTheMessageThatHasBegun(t *testing.T) {
	eps := local.New(3)
	e, sender := engine(bereft{eps[2]}), eps[1].P2P()
	put := func() bool {
		_, ok, err := sender.TryPut(2, &transport.Message{Bytes: make([]byte, 8), Total: 16, Seq: 3, Clock: 1})
		require.NoError(t, err)
		return ok
	}
	require.True(t, put())
	recv := start(e, false, AnySource, make([]byte, 16))
	for !put() {
		runtime.Gosched()
	}
	require.NoError(t, recv.wait(t))
	var lost *transport.PeerLostError
	require.ErrorAs(t, start(e, false, AnySource, make([]byte, 16)).wait(t), &lost)
	require.False(t, eps[0].Failed())
}

// leaving is an endpoint that its rank closes once it has taken a part of a message.
type leaving struct{ transport.Endpoint }

type leavingP2P struct {
	transport.P2P
	hasTaken *interleave.Bool
}

func (ep leaving) P2P() transport.P2P { return leavingP2P{ep.Endpoint.P2P(), new(interleave.Bool)} }

func (l leavingP2P) Take(from int) {
	l.P2P.Take(from)
	l.hasTaken.Store(true)
	l.Wake()
}

func (l leavingP2P) Lost(int) error {
	if l.hasTaken.Load() {
		return transport.ErrClosed
	}
	return nil
}

// closing is an endpoint that its rank closes while it asks which others are lost.
type closing struct{ transport.Endpoint }

type closingP2P struct{ transport.P2P }

func (ep closing) P2P() transport.P2P { return closingP2P{ep.Endpoint.P2P()} }

func (l closingP2P) Lost(peer int) error {
	if peer < 0 {
		return nil
	}
	return transport.ErrClosed
}

// A receive that times out while its rank leaves does not say of the others that they have left.
func TestLeavingAtATimeout(t *testing.T) {
	e := engine(closing{local.New(2)[1]})
	end := make(ended, 1)
	e.Start(&Transfer{Request: Request{
		Ctx: context.Background(), Peer: AnySource, Tag: 3, Type: 1, Data: make([]byte, 1), Owner: end, Timeout: time.Millisecond,
	}})
	var late *transport.TimeoutError
	require.ErrorAs(t, end.wait(t), &late)
	require.Empty(t, late.Left)
	require.Equal(t, []int{0}, late.Behind)
}

// A rank that leaves in the middle of a message does not fail the group: the others learn that it
// has left.
func TestLeavingInAMessage(t *testing.T) {
	eps := local.New(2)
	recv := start(engine(leaving{eps[1]}), false, 0, make([]byte, 16))
	_, ok, err := eps[0].P2P().TryPut(1, &transport.Message{Bytes: make([]byte, 8), Total: 16, Seq: 3, Clock: 1})
	require.NoError(t, err)
	require.True(t, ok)
	require.ErrorIs(t, recv.wait(t), transport.ErrClosed)
	require.False(t, eps[0].Failed())
}
