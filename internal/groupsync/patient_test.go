package groupsync

import (
	"context"
	"errors"
	"testing"

	"github.com/goccl/goccl/transport"
)

// A patient call sleeps at once in each of its waits, and learns nothing for others.
func TestPatientCallsSleepAtOnce(t *testing.T) {
	states := []*State{new(State), new(State)}
	n := &neighbour{state: states[1]}
	r := NewMember(NewGroup(states, new(Words), nil, n), 0, nil, true)
	before := r.eager
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
		t.Errorf("%d patient calls slept %d times and yielded %d times", calls, n.sleeps, n.yields)
	}
	if want := (budget{parks: calls}); r.patient != want || r.eager != before {
		t.Errorf("the budgets are %+v and %+v, want %+v and %+v", r.patient, r.eager, want, before)
	}
	n.seq++
	e := &transport.Arrival{Ctx: context.Background(), Seq: n.seq}
	if err := r.Begin(e); err != nil {
		t.Fatal(err)
	}
	r.Publish(e)
	if err := r.AwaitAll(); err != nil || n.yields != 1 {
		t.Errorf("a call that is not patient yields %d times (error: %v)", n.yields, err)
	}
}

// dying is a process that dies while another sleeps for the second time.
type dying struct{ sleeps, yields int }

func (d *dying) Wake(int)                        {}
func (d *dying) Sleep(int, context.Context) bool { d.sleeps++; return false }
func (d *dying) Yield() bool                     { d.yields++; return true }
func (d *dying) Asleep(int) bool                 { return true }
func (d *dying) Dead(int) (pid int, is bool)     { return 17, d.sleeps >= 2 }

// A lane that rests notices a death, once, and a patient one has neither polled nor
// yielded before.
func TestLaneNoticesDeath(t *testing.T) {
	for _, patient := range []bool{false, true} {
		d := new(dying)
		states := []*State{new(State), new(State)}
		l := NewP2P(NewMember(NewGroup(states, new(Words), noCauses{}, d), 0, nil, true), true, nothing)
		budget := l.budget
		if err := l.Lost(1); err != nil {
			t.Errorf("lost at first: %v", err)
		}
		never := func() bool { return false }
		l.Rest(never, patient)
		var lost *transport.PeerLostError
		if err := l.Lost(1); !errors.As(err, &lost) || *lost != (transport.PeerLostError{Rank: 1, PID: 17}) {
			t.Errorf("patient %v: %v", patient, err)
		}
		if patient && (d.yields != 0 || l.budget != budget) || !patient && d.yields != maxYields {
			t.Errorf("patient %v: %d yields, and the budget is %+v after %+v", patient, d.yields, l.budget, budget)
		}
		if states[0].resting.Load() != 0 {
			t.Error("it still says that it rests")
		}
		slept := d.sleeps
		l.Rest(func() bool { return d.sleeps > slept+3 }, patient) // the death is no news any more
		if d.sleeps != slept+4 {
			t.Errorf("patient %v: a death is news again", patient)
		}
	}
}
