package groupsync

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
)

// A call with NoSpin sleeps at once in each of its waits, and does not change the budget of
// other calls.
func TestNoSpinCallsSleepAtOnce(t *testing.T) {
	tick := time.Microsecond
	setClock(t, &tick)
	states := []*State{new(State), new(State)}
	n := &neighbour{state: states[1]}
	r := NewMember(NewGroup(states, new(Words), nil, n), 0, nil, true)
	before := r.budgets.spinning

	const calls = 200
	for range calls {
		n.seq++
		e := &transport.Arrival{Ctx: context.Background(), Seq: n.seq, NoSpin: true}
		if err := r.Begin(e); err != nil {
			t.Fatal(err)
		}
		r.Publish(e)
		if err := r.AwaitAll(); err != nil {
			t.Fatal(err)
		}
	}

	if n.sleeps != calls || n.yields != 0 {
		t.Errorf("%d calls with NoSpin slept %d times and yielded %d times", calls, n.sleeps, n.yields)
	}
	if r.budgets.sleeping != (budget{}) || r.budgets.spinning != before {
		t.Errorf("the budgets are %+v and %+v, want zero and %+v", r.budgets.sleeping, r.budgets.spinning, before)
	}
	n.seq++
	e := &transport.Arrival{Ctx: context.Background(), Seq: n.seq}

	if err := r.Begin(e); err != nil {
		t.Fatal(err)
	}
	r.Publish(e)
	if err := r.AwaitAll(); err != nil || n.yields != 1 {
		t.Errorf("a call without NoSpin yields %d times (error: %v)", n.yields, err)
	}
}

// dying simulates a process that dies during another's second sleep.
type dying struct{ sleeps, yields int }

func (d *dying) Wake(int)                        {}
func (d *dying) Sleep(int, context.Context) bool { d.sleeps++; return false }
func (d *dying) Yield() bool                     { d.yields++; return true }
func (d *dying) LostCore(int)                    {}
func (d *dying) IsAsleep(int) bool               { return true }
func (d *dying) Dead(int) (pid int, is bool)     { return 17, d.sleeps >= 2 }

// Rest notices a death once. With noSpin it neither polls nor yields before.
func TestRestNoticesDeath(t *testing.T) {
	tick := time.Microsecond
	setClock(t, &tick)
	for _, noSpin := range []bool{false, true} {
		d := new(dying)
		states := []*State{new(State), new(State)}
		l := NewP2P(NewMember(NewGroup(states, new(Words), noCauses{}, d), 0, nil, true), true, nothing)
		budget := l.budget
		if err := l.Lost(1); err != nil {
			t.Errorf("lost at first: %v", err)
		}

		never := func() bool { return false }
		l.Rest(never, noSpin)
		var lost *transport.PeerLostError
		if err := l.Lost(1); !errors.As(err, &lost) || lost.Rank != 1 || lost.PID != 17 {
			t.Errorf("noSpin %v: %v", noSpin, err)
		}

		if noSpin && (d.yields != 0 || l.budget != budget) || !noSpin && d.yields != maxYields {
			t.Errorf("noSpin %v: %d yields, and the budget is %+v after %+v", noSpin, d.yields, l.budget, budget)
		}
		if states[0].resting.Load() != 0 {
			t.Error("resting is still set")
		}
		slept := d.sleeps
		l.Rest(func() bool { return d.sleeps > slept+3 }, noSpin) // the death does not end it again
		if d.sleeps != slept+4 {
			t.Errorf("noSpin %v: the death ended Rest again", noSpin)
		}
	}
}
