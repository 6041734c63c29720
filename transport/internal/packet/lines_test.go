package packet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
	"github.com/stretchr/testify/require"
)

// joinedInRounds returns processes that send lines in rounds, and their ranks' endpoints.
func joinedInRounds(t *testing.T, ranks int) ([]*Process, []*Endpoint) {
	all := inRounds(processes(ranks), 2)
	eps := make([]*Endpoint, ranks)
	for i, ep := range joinAll(t, all) {
		eps[i] = ep.(*Endpoint)
		eps[i].SetTimeout(transport.Timeout{After: time.Hour}) // no answer to a question of late helps
	}
	t.Cleanup(func() {
		for _, ep := range eps {
			require.NoError(t, ep.Close())
		}
	})
	return all, eps
}

// onEach runs f on some ranks at once.
func onEach(ranks []int, f func(rank int)) {
	var running sync.WaitGroup
	for _, rank := range ranks {
		running.Go(func() { f(rank) })
	}
	running.Wait()
}

// allExcept returns the ranks of n that are not in except.
func allExcept(n int, except ...int) (ranks []int) {
	for rank := range n {
		if !slices.Contains(except, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func enterCall(t *testing.T, ep *Endpoint, seq uint64) error {
	_, err := ep.Enter(&transport.Arrival{Ctx: t.Context(), Seq: seq})
	return err
}

// A barrier takes log2 R packets of each rank.
func TestPacketsOfBarrier(t *testing.T) {
	const calls = 5
	for _, n := range []int{2, 3, 4, 5, 7, 8, 9, 16, 17, 33} {
		all, eps := joinedInRounds(t, n)
		onEach(allExcept(n), func(rank int) {
			for seq := range uint64(calls) {
				require.NoError(t, enterCall(t, eps[rank], seq+1))
			}
		})
		net := all[0].wire.(*netWire).net
		net.mu.Lock()
		require.Equal(t, calls*n*bits.Len(uint(n-1)), net.sent[kindLines], "%d ranks", n)
		require.Zero(t, net.sent[kindQuery])
		net.mu.Unlock()
	}
}

// A rank that leaves sends the line of one that cannot reply: who needs it can then ask nobody.
func TestLinesOfSilentRankBeforeLeaving(t *testing.T) {
	all, eps := joinedInRounds(t, 4)
	net := all[0].wire.(*netWire).net
	hold := func(to int) {
		net.mu.Lock()
		defer net.mu.Unlock()
		net.slow[[2]int{0, to}] = true
	}
	hold(2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	late := make(chan error, 1)
	go func() {
		_, err := eps[2].Enter(&transport.Arrival{Ctx: ctx, Seq: 1})
		late <- err
	}()
	onEach([]int{0, 1, 3}, func(rank int) { require.NoError(t, enterCall(t, eps[rank], 1)) })

	hold(1)
	for all[1].poll() {
	}
	all[1].unresponsive[0].Store(true)
	require.NoError(t, eps[1].Close())
	require.NoError(t, eps[3].Close())
	require.NoError(t, <-late)
}

// Payloads of all lengths reach all ranks, also if those of a round do not fit into a packet.
func TestLongPayloads(t *testing.T) {
	const n, calls = 70, 4
	payload := func(rank int, seq uint64, length int) []byte {
		b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(rank)), seq)
		return bytes.Repeat(b, length/len(b)+1)[:length]
	}
	lengths := []int{payloadBytes, 0, transport.InlineBytes + 1, payloadBytes}
	_, eps := joinedInRounds(t, n)
	onEach(allExcept(n), func(rank int) {
		for i, length := range lengths {
			seq := uint64(i) + 1
			_, err := eps[rank].Enter(&transport.Arrival{Ctx: t.Context(), Seq: seq, Payload: payload(rank, seq, length)})
			require.NoError(t, err)
			for from := range n {
				require.Equal(t, payload(from, seq, length), eps[rank].Payload(from, length))
			}
		}
	})
}

// Ranks of a call that one rank lacks name that rank alone, although lines of many others would come through it.
func TestOneIsMissing(t *testing.T) {
	const n, absent = 13, 5
	t.Run("late", func(t *testing.T) {
		_, eps := joinedInRounds(t, n)
		onEach(allExcept(n, absent), func(rank int) {
			var warned [][]int
			eps[rank].SetTimeout(transport.Timeout{After: 100 * time.Millisecond, Warn: func(_ uint64, missing []int) { warned = append(warned, missing) }})
			err := enterCall(t, eps[rank], 1)
			late, ok := errors.AsType[*transport.TimeoutError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, []int{absent}, late.Missing)
			require.Empty(t, late.Behind)
			// Of ranks that have not come yet either, the warning is right as well.
			require.Len(t, warned, 1)
			require.Contains(t, warned[0], absent)
		})
		require.NoError(t, enterCall(t, eps[absent], 1), "all others have entered")
	})
	t.Run("warning", func(t *testing.T) {
		_, eps := joinedInRounds(t, n)
		var entered, waiting sync.WaitGroup
		entered.Add(n - 2)
		warned := make(chan []int, 1)
		for _, rank := range allExcept(n, absent, 0) {
			waiting.Go(func() {
				require.NoError(t, eps[rank].Begin(&transport.Arrival{Ctx: t.Context(), Seq: 1}))
				eps[rank].Publish(&transport.Arrival{Seq: 1})
				eps[rank].group.lines.send(&transport.Arrival{Seq: 1})
				entered.Done()
				require.NoError(t, eps[rank].AwaitAll())
			})
		}
		entered.Wait()
		eps[0].SetTimeout(transport.Timeout{After: 2 * time.Second, Warn: func(_ uint64, missing []int) { warned <- missing }})
		waiting.Go(func() { require.NoError(t, enterCall(t, eps[0], 1)) })
		require.Equal(t, []int{absent}, <-warned)
		require.NoError(t, enterCall(t, eps[absent], 1))
		waiting.Wait()
	})
	t.Run("refuses", func(t *testing.T) {
		_, eps := joinedInRounds(t, n)
		var entered, waiting sync.WaitGroup
		for _, rank := range allExcept(n, absent) {
			entered.Add(1)
			waiting.Go(func() {
				e := &transport.Arrival{Ctx: t.Context(), Seq: 1}
				require.NoError(t, eps[rank].Begin(e))
				eps[rank].Publish(e)
				eps[rank].group.lines.send(e)
				entered.Done()
				err := eps[rank].AwaitAll()
				refused, ok := errors.AsType[*transport.RejectedError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, []int{absent}, refused.Ranks)
				require.Equal(t, []string{"no buffer"}, refused.Why)
				require.Empty(t, refused.Missing)
			})
		}
		entered.Wait()
		eps[absent].Reject(1, "no buffer")
		waiting.Wait()
	})
	gone := func(end func(all []*Process, eps []*Endpoint)) func(t *testing.T) {
		return func(t *testing.T) {
			all, eps := joinedInRounds(t, n)
			var waiting sync.WaitGroup
			for _, rank := range allExcept(n, absent) {
				waiting.Go(func() {
					err := enterCall(t, eps[rank], 1)
					lost, ok := errors.AsType[*transport.PeerLostError](err)
					require.True(t, ok, "%v", err)
					require.Equal(t, absent, lost.Rank)
				})
			}
			end(all, eps)
			waiting.Wait()
		}
	}
	t.Run("leaves", gone(func(_ []*Process, eps []*Endpoint) { require.NoError(t, eps[absent].Close()) }))
	t.Run("dies", gone(func(all []*Process, _ []*Endpoint) { die(all, absent) }))
}

// die makes a process count as dead on all others.
func die(all []*Process, dead int) {
	for rank, p := range all {
		if rank != dead && p.deaths.markDead(dead) {
			p.noticeDeaths()
		}
	}
}

// has reports whether the line of a rank is here.
func (g *group) has(rank int, seq uint64) bool {
	g.sending.Lock()
	defer g.sending.Unlock()
	return g.lines.calls[seq&1].lines[rank].number == seq
}

// holdUp makes a rank enter a call in which it passes on no line of others, as if its process were stopped right then, and waits until the
// next rank has its line. goOn lets the process run.
func holdUp(t *testing.T, all []*Process, eps []*Endpoint, rank int, e *transport.Arrival) (goOn func()) {
	all[rank].polling.Lock()
	ep := eps[rank]
	require.NoError(t, ep.Begin(e))
	ep.Publish(e)
	ep.group.lines.send(e)
	next := (rank + 1) % len(eps)
	all[next].waitUntil(t.Context(), func() bool { return eps[next].group.has(rank, e.Seq) })
	return all[rank].polling.Unlock
}

// A call that all ranks have entered ends well on those that live, whatever one of them did in the middle of the rounds, and also if another
// one comes after that.
func TestGoneInRounds(t *testing.T) {
	const n, victim, last = 11, 3, 2
	for name, end := range map[string]func(t *testing.T, all []*Process, eps []*Endpoint, goOn func()) (tells bool){
		"dies": func(t *testing.T, all []*Process, eps []*Endpoint, goOn func()) bool {
			t.Cleanup(goOn)
			die(all, victim)
			return true
		},
		"leaves": func(t *testing.T, _ []*Process, eps []*Endpoint, goOn func()) bool {
			t.Cleanup(goOn)
			require.NoError(t, eps[victim].Close())
			return true
		},
		"gives up": func(t *testing.T, _ []*Process, eps []*Endpoint, goOn func()) bool {
			goOn() // it passes lines on although it no longer waits
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, eps := joinedInRounds(t, n)
			goOn := holdUp(t, all, eps, victim, &transport.Arrival{Ctx: t.Context(), Seq: 1})
			var waiting sync.WaitGroup
			for _, rank := range allExcept(n, victim, last) {
				waiting.Go(func() { require.NoError(t, enterCall(t, eps[rank], 1)) })
			}
			if end(t, all, eps, goOn) {
				for _, rank := range allExcept(n, victim, last) {
					for !eps[rank].group.has(victim, 1) {
						runtime.Gosched()
					}
				}
				for net := all[0].wire.(*netWire).net; !net.quiet(); {
					runtime.Gosched()
				}
			}
			require.NoError(t, enterCall(t, eps[last], 1))
			waiting.Wait()
		})
	}
}

// A rank that is stopped in the middle of the rounds has entered: a timeout does not name it as missing. Those that wait for ranks whose
// lines it holds up name it as behind.
func TestStoppedInRounds(t *testing.T) {
	t.Parallel()
	const n, victim = 8, 0 // which is waited for first
	e := func(after time.Duration) *transport.Arrival {
		return &transport.Arrival{Ctx: t.Context(), Seq: 1, Exposed: true, Limit: transport.Timeout{After: after}}
	}
	t.Run("timeout", func(t *testing.T) {
		all, eps := joinedInRounds(t, n)
		goOn := holdUp(t, all, eps, victim, e(time.Hour))
		defer goOn()
		onEach(allExcept(n, victim), func(rank int) {
			_, err := eps[rank].Enter(e(50 * time.Millisecond))
			require.NoError(t, err)
		})
	})
	t.Run("chain", func(t *testing.T) {
		all, eps := joinedInRounds(t, n)
		goOn := holdUp(t, all, eps, victim, e(time.Hour))
		defer goOn()
		const asker, last = victim + 1, (victim + 6) % n // that one waits for rank victim+4's block, and that for the victim
		var waiting sync.WaitGroup
		defer waiting.Wait()
		for _, rank := range allExcept(n, victim, asker) {
			waiting.Go(func() {
				if _, err := eps[rank].Enter(e(time.Hour)); err != nil {
					require.ErrorIs(t, err, transport.ErrFailed)
				}
			})
		}
		_, err := eps[asker].Enter(e(300 * time.Millisecond))
		require.NoError(t, err)
		_, err = eps[asker].Next(last)
		late, ok := errors.AsType[*transport.TimeoutError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, []int{victim}, late.Behind)
		eps[asker].Fail(proposed(asker))
	})
}

// A rank that has completed a call and then leaves is not taken for one that did not come, although no other rank has its line yet.
func TestLeavesAhead(t *testing.T) {
	const n, first, other = 16, 4, 7
	all, eps := joinedInRounds(t, n)
	net := all[0].wire.(*netWire).net
	slow := func(is bool) {
		net.mu.Lock()
		defer net.mu.Unlock()
		for _, distance := range []int{1, 2, 4, 8} {
			net.slow[[2]int{first, (first + distance) % n}] = is
		}
	}
	slow(true)
	var waiting sync.WaitGroup
	for _, rank := range allExcept(n, first) {
		waiting.Go(func() { require.NoError(t, enterCall(t, eps[rank], 1)) })
	}
	require.NoError(t, enterCall(t, eps[first], 1))
	require.NoError(t, eps[first].Close())
	for !eps[other].group.sync.HasDeparted(first) {
		runtime.Gosched()
	}
	eps[other].group.rest.CatchUp()
	require.True(t, eps[other].group.has(first, 1))
	slow(false)
	waiting.Wait()
}

// A rank says that it waits for the one that has to pass the next lines on to it.
func TestWaitsForNextRound(t *testing.T) {
	const n, waiter, last = 8, 6, 2
	_, eps := joinedInRounds(t, n)
	const waitOn = 4 // among the words
	waitsFor := func(rank int) {
		for eps[waiter].group.sync.Words(waiter)[waitOn] != uint64(rank)+1 {
			runtime.Gosched()
		}
	}
	var waiting sync.WaitGroup
	enter := func(ranks ...int) {
		for _, rank := range ranks {
			waiting.Go(func() { require.NoError(t, enterCall(t, eps[rank], 1)) })
		}
	}
	enter(waiter)
	waitsFor(waiter - 1)
	enter(waiter - 1)
	waitsFor(waiter - 2)
	enter(waiter-2, waiter-3)
	waitsFor(last)
	enter(0, 1, last, 7)
	waiting.Wait()
}

// Packets of lines that no rank sends break the group, and those that it has already change nothing.
func TestWrongLines(t *testing.T) {
	entry := func(rank, length int, number uint64, b []byte) []byte {
		e := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(rank)), uint32(length))
		return append(binary.LittleEndian.AppendUint64(e, number), b...)
	}
	line := make([]byte, lineHead)
	for name, c := range map[string]struct {
		body []byte
		ok   bool
	}{
		"none":             {nil, true},
		"one":              {entry(1, lineHead, 1, line), true},
		"two calls":        {append(entry(1, lineHead, 1, line), entry(1, lineHead, 2, line)...), true},
		"half a head":      {entry(1, lineHead, 1, line)[:lineEntry/2], false},
		"cut":              {entry(1, lineHead, 1, line[1:]), false},
		"too short":        {entry(1, lineHead-1, 1, line), false},
		"too long":         {entry(1, lineHead+payloadBytes+1, 1, make([]byte, lineHead+payloadBytes+1)), false},
		"the receiver's":   {entry(0, lineHead, 1, line), false},
		"no rank's":        {entry(3, lineHead, 1, line), false},
		"a negative rank":  {entry(-1, lineHead, 1, line), false},
		"something behind": {append(entry(1, lineHead, 1, line), 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := inRounds(processes(3), 2)[0]
			g := newGroup(p, 7, 0, []int{0, 1, 2})
			for range 2 {
				if err := g.lines.handle(c.body); c.ok {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, errBadPacket)
				}
			}
		})
	}
}

// Larger groups than packets can serve are refused before anything is sent.
func TestTooManyRanks(t *testing.T) {
	require.LessOrEqual(t, headBytes+8*groupsync.StateWords+8*maxRanks, MaxBytes)
	require.LessOrEqual(t, headBytes+4*maxRanks, MaxBytes, "a question")
	require.LessOrEqual(t, headBytes+max(linesBytes, lineEntry+lineHead+payloadBytes), MaxBytes)
	p := processes(2)[0]
	_, err := p.joinGroup(t.Context(), 1, 0, make([]int, maxRanks+1), "", func(func(int) bool) error { return nil }, nil)
	refused, ok := errors.AsType[*transport.NotAvailableError](err)
	require.True(t, ok, "%v", err)
	require.Contains(t, refused.Error(), fmt.Sprint(maxRanks))
	require.Empty(t, p.groups)
}

// subgroup forms a group of all ranks of eps.
func subgroup(t *testing.T, eps []*Endpoint, number uint64) []*Endpoint {
	made := make([]*Endpoint, len(eps))
	onEach(allExcept(len(eps)), func(rank int) {
		ep, err := eps[rank].Group(t.Context(), number, allExcept(len(eps)))
		require.NoError(t, err)
		made[rank] = ep.(*Endpoint)
	})
	return made
}

// others returns the other ranks that are still there.
func (g *group) others() []int {
	return slices.DeleteFunc(allExcept(len(g.processOf), g.rank), func(rank int) bool { return !g.isThere(rank) })
}

// A process keeps nothing of freed groups, once all their ranks have left or died.
func TestFreedGroups(t *testing.T) {
	const n = 3
	all, eps := joinedInRounds(t, n)
	kept := func(p *Process) int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.groups)
	}
	for number := range uint64(20) {
		made := subgroup(t, eps, number)
		onEach(allExcept(n), func(rank int) {
			require.NoError(t, enterCall(t, made[rank], 1))
			require.NoError(t, made[rank].Close())
			all[rank].waitUntil(t.Context(), func() bool { return number%2 == 0 || len(made[rank].group.others()) == 0 })
			require.NoError(t, made[rank].Free())
		})
	}
	for _, p := range all {
		p.waitUntil(t.Context(), func() bool { return kept(p) == 1 })
	}
	made := subgroup(t, eps, 100)
	for _, rank := range []int{0, 1} {
		require.NoError(t, made[rank].Close())
		require.NoError(t, made[rank].Free())
	}
	defer func() { require.NoError(t, made[2].Close()) }()
	require.Equal(t, 2, kept(all[0]), "rank 2 may still send something")
	die(all, 2)
	for _, p := range all[:2] {
		p.waitUntil(t.Context(), func() bool { return kept(p) == 1 })
	}
}

// A process that has not answered in one group is not waited for in another, also if it would decide.
func TestUnresponsiveInAllGroups(t *testing.T) {
	t.Parallel()
	const n = 3
	all, eps := joinedInRounds(t, n)
	made := subgroup(t, eps, 1)
	all[0].polling.Lock() // it is stopped
	goOn := sync.OnceFunc(all[0].polling.Unlock)
	defer goOn()
	eps[1].group.rest.CatchUp()
	require.False(t, made[1].group.isResponsive(0))
	require.Equal(t, 1, made[1].group.coordinator())
	made[1].Fail(proposed(1))
	require.Equal(t, 1, made[1].Failure().By)
	goOn()
	all[1].waitUntil(t.Context(), func() bool { return eps[1].group.isResponsive(0) }) // its old answer comes
	require.Equal(t, 0, eps[1].group.coordinator())
	for _, ep := range made {
		require.NoError(t, ep.Close())
	}
}

// Processes whose ranks make one collective of the library after the other answer as well, by the goroutine that looks less often then
// (see TestLooks).
func TestRepliesBesideLibrary(t *testing.T) {
	all, eps := joinedInRounds(t, 3)
	var calling sync.WaitGroup
	defer calling.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for _, p := range all[1:] {
		calling.Go(func() {
			for ctx.Err() == nil {
				p.libraryCalls.Add(1)
				runtime.Gosched()
			}
		})
	}
	for range 5 {
		eps[0].group.rest.CatchUp()
		require.True(t, eps[0].group.isResponsive(1))
		require.True(t, eps[0].group.isResponsive(2))
	}
}

// A context that ends in the middle of the rounds ends the wait of its rank alone. The others complete the call.
func TestCancelledInRounds(t *testing.T) {
	const n = 9
	_, eps := joinedInRounds(t, n)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for _, rank := range allExcept(n, 0, 1) {
		waiting.Go(func() { require.NoError(t, enterCall(t, eps[rank], 1)) })
	}
	cancel()
	_, err := eps[1].Enter(&transport.Arrival{Ctx: ctx, Seq: 1})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, enterCall(t, eps[0], 1))
	waiting.Wait()
}
