package packet

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proposed is a failure of a rank.
func proposed(rank int) *transport.Failure {
	return &transport.Failure{Kind: transport.FailureAborted, By: rank, Seq: 1, Ranks: []int{rank}, Text: "it gave up"}
}

// joined returns processes, and their ranks' endpoints.
func joined(t *testing.T, ranks int) ([]*Process, []transport.Endpoint) {
	all := processes(ranks)
	eps := joinAll(t, all)
	t.Cleanup(func() {
		for _, ep := range eps {
			require.NoError(t, ep.Close())
		}
	})
	return all, eps
}

// enter enters call 1 on ranks, and returns their errors.
func enter(t *testing.T, eps []transport.Endpoint) []error {
	errs := make([]error, len(eps))
	var entering sync.WaitGroup
	for i, ep := range eps {
		ep.SetTimeout(transport.Timeout{After: time.Minute})
		entering.Go(func() { _, errs[i] = ep.Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1}) })
	}
	entering.Wait()
	return errs
}

// Once the lowest rank has left, the next one decides.
func TestCoordinatorLeaves(t *testing.T) {
	_, eps := joined(t, 4)
	require.NoError(t, eps[0].Close())
	var failing sync.WaitGroup
	for _, rank := range []int{2, 3} {
		failing.Go(func() { eps[rank].Fail(proposed(rank)) })
	}
	failing.Wait()
	first := eps[1].Failure()
	require.NotNil(t, first)
	for _, ep := range eps[1:] {
		require.Equal(t, first.By, ep.Failure().By)
	}
}

// What one process finds dead, all others learn.
func TestDeathSpreads(t *testing.T) {
	all, eps := joined(t, 4)
	require.True(t, all[2].deaths.markDead(1))
	all[2].noticeDeaths()
	all[2].reportDeaths([]int{1})
	for i, err := range enter(t, []transport.Endpoint{eps[0], eps[2], eps[3]}) {
		lost, ok := errors.AsType[*transport.PeerLostError](err)
		require.True(t, ok, "%d: %v", i, err)
		require.Equal(t, 1, lost.Rank)
	}
}

// A process that answers nothing, as one that is stopped, is named after the timeout, and does not hold up the others much longer.
func TestStopped(t *testing.T) {
	t.Parallel()
	all, eps := joined(t, 3)
	all[1].polling.Lock()
	defer all[1].polling.Unlock()
	for _, rank := range []int{0, 2} {
		eps[rank].SetTimeout(transport.Timeout{After: 50 * time.Millisecond})
	}
	var entering sync.WaitGroup
	for _, rank := range []int{0, 2} {
		entering.Go(func() {
			_, err := eps[rank].Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1})
			if !errors.Is(err, transport.ErrFailed) {
				late, ok := errors.AsType[*transport.TimeoutError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, []int{1}, late.Missing)
			}
			eps[rank].Fail(&transport.Failure{Kind: transport.FailureTimeout, By: rank, Seq: 1, Ranks: []int{1}})
			require.Equal(t, []int{1}, eps[rank].Failure().Ranks)
		})
	}
	entering.Wait()
}

// A rank that is lost before all have joined has a number of its process, if the transport knows it.
func TestLostBeforeJoining(t *testing.T) {
	p := NewProcess(Config{Name: "net", Wire: &netWire{newNet(2), 0}, PIDs: []int{41, 42}})
	p.handleWireError(&PeerError{1, errDeaf})
	_, err := p.JoinWorld(t.Context(), 1)
	require.ErrorContains(t, err, "peer lost: rank 1 (pid 42) is gone")
}

// If a member dies that has come to some of the others only, those learn from the rest whom they have lost.
func TestMemberThatOnlySomeHaveSeen(t *testing.T) {
	all, eps := joined(t, 3)
	members := []int{1, 2, 0}
	form := func(rank int) (transport.Endpoint, error) {
		return eps[rank].(transport.Groups).Group(t.Context(), 1, members)
	}
	n := all[0].wire.(*netWire).net
	n.mu.Lock()
	n.slow[[2]int{2, 1}] = true
	n.mu.Unlock()

	var forming sync.WaitGroup
	var seen sync.WaitGroup
	seen.Add(2)
	dead := make(chan transport.Endpoint, 1)
	forming.Go(func() {
		made, err := form(2)
		assert.NoError(t, err)
		dead <- made
		seen.Done()
	})
	forming.Go(func() {
		made, err := form(0)
		seen.Done()
		if assert.NoError(t, err) {
			_, err = made.Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1})
			assert.ErrorIs(t, err, transport.ErrFailed)
			if f := made.Failure(); assert.NotNil(t, f) {
				assert.Equal(t, []any{transport.FailurePeerLost, []int{1}, os.Getpid()}, []any{f.Kind, f.Ranks, f.PID})
			}
			assert.NoError(t, errors.Join(made.Close(), made.Free()))
		}
	})
	forming.Go(func() {
		_, err := form(1)
		lost, ok := errors.AsType[*transport.PeerLostError](err)
		assert.True(t, ok && lost.Rank == 1, "%v", err)
	})
	seen.Wait()
	all[1].deaths.markDead(2)
	all[1].noticeDeaths()
	forming.Wait()
	made := <-dead
	require.NoError(t, errors.Join(made.Close(), made.Free()))
}

// waiting is a level in which its rank waits for rank 0 of it.
type waiting struct{ transport.Endpoint }

func (waiting) WaitsFor() int { return 0 }

// Of ranks that do not come, one that waits for another of them in a level is not at fault.
func TestHeldUpInALevel(t *testing.T) {
	all, eps := joined(t, 3)
	g := eps[2].(*Endpoint).group
	g.levels.add(waiting{}, []int{1, 2})
	eps[0].SetTimeout(transport.Timeout{After: 50 * time.Millisecond})
	_, err := eps[0].Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1})
	late, ok := errors.AsType[*transport.TimeoutError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []int{1}, late.Missing)

	g.levels.drop()
	g.sendWords() // it goes on
	for all[0].poll() {
	}
	require.False(t, eps[0].(*Endpoint).group.sync.IsWaiting(2))
}

// A process that dies while others leave the job is not waited for, whichever of them sees it.
func TestDeathWhileLeaving(t *testing.T) {
	all := processes(3)
	child := exec.Command("sleep", "1000") // stands in for rank 2
	require.NoError(t, child.Start())
	here, err := parseHost(describeHost(0))
	require.NoError(t, err)
	there := here
	there.pid = child.Process.Pid
	all[1].deaths.watchRank(2, there, here, true)
	var leaving sync.WaitGroup
	for _, p := range all[:2] {
		leaving.Go(func() {
			p.SayGoodbye(t.Context())
			require.NoError(t, t.Context().Err())
			require.True(t, p.isDead(2))
		})
	}
	for !all[0].saidGoodbye[1].Load() || !all[1].saidGoodbye[0].Load() { // both wait for rank 2 alone
		runtime.Gosched()
	}
	require.False(t, all[0].isDead(2) || all[1].isDead(2))
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	leaving.Wait()
}

// deafWire is a wire that fails.
type deafWire struct{ netWire }

var errDeaf = errors.New("the network is down")

func (w *deafWire) Send(int, []byte, Body) error { return errDeaf }

// An error of the wire fails the group on its process, with the error itself.
func TestBrokenWire(t *testing.T) {
	p := newProcess(&deafWire{netWire{newNet(2), 0}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := p.JoinWorld(ctx, 1)
	aborted, ok := errors.AsType[*transport.AbortedError](err)
	require.True(t, ok, "%v", err)
	require.EqualError(t, aborted.Cause, errDeaf.Error())
}

// What arrives for a group before this process has made it is kept, and what arrives after its end is dropped.
func TestEarlyAndLate(t *testing.T) {
	all, eps := joined(t, 2)
	made := make([]transport.Endpoint, 2)
	var forming sync.WaitGroup
	for rank, ep := range eps {
		forming.Go(func() {
			var err error
			made[rank], err = ep.(transport.Groups).Group(t.Context(), 1, []int{1, 0})
			require.NoError(t, err)
		})
	}
	forming.Wait()
	require.NoError(t, made[0].Close())
	require.NoError(t, made[0].Free())
	defer func() { require.NoError(t, made[1].Close()) }()
	g := made[1].(*Endpoint).group
	g.sendTo(1, head{kind: kindWords}, make([]byte, 64))
	for all[0].poll() {
	}
	all[0].mu.Lock()
	defer all[0].mu.Unlock()
	require.Nil(t, all[0].groups[g.id].early)
	require.NoError(t, all[0].err)
}

// A rank that waited for another one, went on and was then stopped is the end of the chain of waits, although it has not said that it went
// on.
func TestStoppedInChain(t *testing.T) {
	t.Parallel()
	all, eps := joined(t, 4)
	of := func(rank int) *Endpoint { return eps[rank].(*Endpoint) }
	limits := []time.Duration{time.Minute, time.Minute, time.Second, time.Minute}
	var entering sync.WaitGroup
	for rank, ep := range eps {
		entering.Go(func() {
			for rank == 1 && !of(2).group.sync.IsWaiting(3) { // rank 3 waits, and has said so
				runtime.Gosched()
			}
			_, err := ep.Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1, Exposed: true, Limit: transport.Timeout{After: limits[rank]}})
			require.NoError(t, err)
			if rank == 3 {
				all[3].polling.Lock() // it is stopped
			}
		})
	}
	entering.Wait()
	defer all[3].polling.Unlock()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		_, err := of(1).Next(3)
		require.ErrorIs(t, err, transport.ErrFailed)
	})
	_, err := of(2).Next(1)
	late, ok := errors.AsType[*transport.TimeoutError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []int{3}, late.Behind)
	of(2).Fail(proposed(2))
}

// A process that has lost messages joins no further group.
func TestJoinAfterBrokenWire(t *testing.T) {
	all, _ := joined(t, 2)
	all[0].handleWireError(errDeaf)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := all[0].JoinWorld(ctx, 2)
	require.Error(t, err)
	_, err = all[0].JoinWorld(t.Context(), 3)
	require.ErrorIs(t, err, errDeaf)
}
