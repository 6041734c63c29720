package ccl_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// stopping is an endpoint that stops where a test wants it to, and counts its users. No test may
// see it freed twice, while it is used, or before it is closed.
type stopping struct {
	transport.Endpoint
	atEnter, atClose, atFailure stop
	free                        chan struct{} // closed by Free, if it is there

	mu          sync.Mutex
	using       int
	closed      bool
	freed       int
	wrong       []string
	noMoreStops interleave.Bool
}

// stop is a place to stop at: a goroutine that reaches it signals here and waits for on.
type stop struct{ here, on chan struct{} }

func newStop() stop { return stop{make(chan struct{}), make(chan struct{})} }

func (s stop) at() {
	if s.here != nil {
		s.here <- struct{}{}
		<-s.on
	}
}

func (ep *stopping) use(where stop) (done func()) {
	ep.count(1)
	if !ep.noMoreStops.Load() {
		where.at()
	}
	return func() { ep.count(-1) }
}

func (ep *stopping) count(n int) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.using += n
	if ep.freed > 0 {
		ep.wrong = append(ep.wrong, "used after Free")
	}
}

func (ep *stopping) Enter(e *transport.Arrival) (transport.Role, error) {
	defer ep.use(ep.atEnter)()
	return ep.Endpoint.Enter(e)
}

func (ep *stopping) Failure() *transport.Failure {
	defer ep.use(ep.atFailure)()
	return ep.Endpoint.Failure()
}

func (ep *stopping) Close() error {
	defer ep.use(ep.atClose)()
	ep.mu.Lock()
	ep.closed = true
	ep.mu.Unlock()
	return ep.Endpoint.Close()
}

func (ep *stopping) Free() error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.freed++
	if ep.free != nil && ep.freed == 1 {
		close(ep.free)
	}
	if ep.using > 0 {
		ep.wrong = append(ep.wrong, "freed while it is used")
	}
	if !ep.closed {
		ep.wrong = append(ep.wrong, "freed before it was closed")
	}
	return ep.Endpoint.Free()
}

// isFreed reports whether Free was called, and fails the test if anything was wrong.
func (ep *stopping) isFreed(t *testing.T) bool {
	t.Helper()
	ep.mu.Lock()
	defer ep.mu.Unlock()
	require.Empty(t, ep.wrong)
	require.LessOrEqual(t, ep.freed, 1)
	return ep.freed == 1
}

// stoppingGroup is a group of n ranks; rank 0 has a stopping endpoint.
func stoppingGroup(t *testing.T, n int, ep *stopping) []*ccl.Communicator {
	ep.noMoreStops.Store(true)
	g := group(t, func(n int) ([]transport.Endpoint, error) {
		eps := local.NewWaiting(n, local.Poll)
		ep.Endpoint, eps[0] = eps[0], ep
		return eps, nil
	}, n)
	ep.noMoreStops.Store(false)
	t.Cleanup(func() { ep.noMoreStops.Store(true) })
	return g
}

// async runs f in a goroutine and returns a function that waits for it.
func async(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error { return <-done }
}

// Close has returned, and the first of two asynchronous calls still uses the endpoint. Its end frees it, and what is noted about both
// Works uses it no more.
func TestCloseBesideAsynchronousCalls(t *testing.T) {
	ep := &stopping{atEnter: newStop()}
	g := stoppingGroup(t, 2, ep)
	works := []*ccl.Work{started(func(async ccl.CallOption) error { return g[0].Barrier(bg, async) }), started(func(async ccl.CallOption) error { return g[0].Barrier(bg, async) })}
	<-ep.atEnter.here
	requireUnfinished(t, ccl.UnfinishedError{Calls: 2}, g[0].Close())
	require.False(t, ep.isFreed(t), "by Close, while the call runs")
	close(ep.atEnter.on)
	for _, w := range works {
		require.ErrorIs(t, w.Wait(bg), ccl.ErrClosed)
	}
	require.True(t, ep.isFreed(t))
}

// Close has marked the communicator as closed, and not yet closed the endpoint. A call that ends
// then does not free the endpoint, because Close still uses it.
func TestCloseBesideTheEndOfACall(t *testing.T) {
	ep := &stopping{atEnter: newStop(), atClose: newStop()}
	g := stoppingGroup(t, 2, ep)
	barrier := async(func() error { return g[0].Barrier(bg) })
	<-ep.atEnter.here
	closing := async(g[0].Close)
	<-ep.atClose.here
	close(ep.atEnter.on)
	require.NoError(t, g[1].Barrier(bg))
	require.NoError(t, barrier())
	require.False(t, ep.isFreed(t), "by the end of the call, while Close runs")
	close(ep.atClose.on)
	require.NoError(t, closing())
	require.True(t, ep.isFreed(t))
}

// Of two concurrent Closes the second does not free the endpoint, because the first still uses it.
func TestCloseBesideClose(t *testing.T) {
	ep := &stopping{atClose: newStop()}
	g := stoppingGroup(t, 2, ep)
	first := async(g[0].Close)
	<-ep.atClose.here
	ep.noMoreStops.Store(true)
	require.NoError(t, g[0].Close())
	require.False(t, ep.isFreed(t), "by the second Close, while the first runs")
	close(ep.atClose.on)
	require.NoError(t, first())
	require.True(t, ep.isFreed(t))
	require.NoError(t, g[0].Close())
	require.True(t, ep.isFreed(t))
}

// Close does not wait for a method that uses the endpoint outside of calls; that method then frees
// the endpoint.
func TestCloseBesideErr(t *testing.T) {
	ep := &stopping{atFailure: newStop()}
	g := stoppingGroup(t, 2, ep)
	looking := async(g[0].Err)
	<-ep.atFailure.here
	ep.noMoreStops.Store(true)
	require.NoError(t, g[0].Close())
	require.False(t, ep.isFreed(t))
	close(ep.atFailure.on)
	require.NoError(t, looking())
	require.True(t, ep.isFreed(t))
	g[0].Abort(errors.New("too late"))
	require.NoError(t, g[0].Err())
}

// A message in progress when the communicator is closed ends, and then the endpoint is freed.
func TestCloseBesideAMessage(t *testing.T) {
	ep := &stopping{free: make(chan struct{})}
	g := stoppingGroup(t, 2, ep)
	var x [1]int32
	w := ccl.Irecv(bg, g[0], x[:], 1, 0)
	requireUnfinished(t, ccl.UnfinishedError{Receives: 1}, g[0].Close())
	require.ErrorIs(t, w.Wait(bg), ccl.ErrClosed)
	<-ep.free // by who drove
	require.True(t, ep.isFreed(t))
}

// Err returns the failure of the group even after its endpoint is freed.
func TestErrAfterClose(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		cause := errors.New("enough")
		g[0].Abort(cause)
		require.NoError(t, errors.Join(g[0].Close(), g[1].Close()))
		for _, c := range g {
			var aborted *transport.AbortedError
			require.ErrorAs(t, c.Err(), &aborted)
			require.Equal(t, 0, aborted.By)
		}
	})
}
