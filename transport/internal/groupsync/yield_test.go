package groupsync

import (
	"context"
	"testing"

	"github.com/goccl/goccl/transport"
)

// neighbour simulates a process that enters each call as soon as this rank yields or sleeps. If
// it is busy, a yield to it takes long.
type neighbour struct {
	state  *State
	seq    uint64
	busy   bool
	yields int
	sleeps int
	lost   []int // the ranks that lost their core
}

func (n *neighbour) enter()                          { n.state.line[n.seq&1].epoch.Store(n.seq) }
func (n *neighbour) Wake(int)                        {}
func (n *neighbour) Sleep(int, context.Context) bool { n.sleeps++; n.enter(); return true }
func (n *neighbour) Yield() bool                     { n.yields++; n.enter(); return !n.busy }
func (n *neighbour) Dead(int) (pid int, dead bool)   { return 1, false }
func (n *neighbour) IsAsleep(int) bool               { return true }
func (n *neighbour) LostCore(rank int)               { n.lost = append(n.lost, rank) }

// A rank yields as long as yields are short. After a long one it sleeps at once in the next
// waits, and in twice as many each time that the next yield is long as well. A short yield
// resets the count.
func TestYieldsBackOff(t *testing.T) {
	states := []*State{new(State), new(State)}
	n := &neighbour{state: states[1]}
	r := NewMember(NewGroup(states, new(Words), nil, n), 0, nil, false)
	call := func() (yielded bool) {
		n.seq++
		yields := n.yields
		e := &transport.Arrival{Ctx: context.Background(), Seq: n.seq}
		if err := r.Begin(e); err != nil {
			t.Fatal(err)
		}
		r.Publish(e)

		if err := r.AwaitAll(); err != nil {
			t.Fatal(err)
		}
		return n.yields > yields
	}
	sleepsUntilYield := func() (sleeps int) {
		for !call() {
			sleeps++
		}
		return sleeps
	}

	for range 10 {
		if !call() {
			t.Fatal("a rank sleeps although yields are good")
		}
	}

	n.busy = true
	call()
	want := minEarly
	for range 10 {
		if got := sleepsUntilYield(); got != want {
			t.Fatalf("a rank sleeps in %d waits after a bad yield, want %d", got, want)
		}
		want = min(2*want, maxEarly)
	}

	n.busy = false
	sleepsUntilYield()
	n.busy = true
	call()
	if got := sleepsUntilYield(); got != minEarly {
		t.Errorf("after a good yield and a bad one a rank sleeps in %d waits, want %d", got, minEarly)
	}
	if len(n.lost) > 0 {
		t.Errorf("ranks that share their cores lost them %d times", len(n.lost))
	}
}
