package groupsync

import (
	"testing"
	"unsafe"
)

// The layout is drawn in the comments; processes will rely on it.
func TestLayout(t *testing.T) {
	var (
		l line
		s State
		w Words
	)
	for what, c := range map[string][2]uintptr{
		"size of line":       {unsafe.Sizeof(l), 128},
		"line.hash":          {unsafe.Offsetof(l.hash), 8},
		"line.payload":       {unsafe.Offsetof(l.payload), 16},
		"line.print":         {unsafe.Offsetof(l.fingerprint), 64},
		"size of State":      {unsafe.Sizeof(s), StateBytes},
		"State.done":         {unsafe.Offsetof(s.done), 256},
		"State.out":          {unsafe.Offsetof(s.out), 264},
		"State.refusedFirst": {unsafe.Offsetof(s.refusedFirst), 272},
		"State.refusedLast":  {unsafe.Offsetof(s.refusedLast), 280},
		"State.left":         {unsafe.Offsetof(s.left), 288},
		"State.waitOn":       {unsafe.Offsetof(s.waitOn), 296},
		"State.token":        {unsafe.Offsetof(s.token), 304},
		"State.resting":      {unsafe.Offsetof(s.resting), 384},
		"State.laneToken":    {unsafe.Offsetof(s.laneToken), 392},
		"size of Words":      {unsafe.Sizeof(w), WordsBytes},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %d, want %d", what, c[0], c[1])
		}
	}
}

// States on the heap begin at a pair of cache lines, without anyone's doing: the
// runtime aligns objects of a power of two that hold no pointers.
func TestAlignment(t *testing.T) {
	states := make([]*State, 100)
	for i := range states {
		states[i] = new(State)
		if uintptr(unsafe.Pointer(states[i]))%128 != 0 {
			t.Fatalf("state %d lies at %p", i, states[i])
		}
	}
}

// A run of refusals is read as two words that may be of two runs; such a mixture
// covers no call that has not been entered by all.
func TestRefusedRun(t *testing.T) {
	var s State
	if s.refused(1) {
		t.Error("nothing was refused yet")
	}
	s.refusedFirst.Store(5)
	if s.refused(5) {
		t.Error("a run without an end is not refused")
	}
	s.refusedLast.Store(7)
	for seq := uint64(1); seq < 10; seq++ {
		if s.refused(seq) != (seq >= 5 && seq <= 7) {
			t.Errorf("call %d: refused is %v", seq, s.refused(seq))
		}
	}
	s.refusedFirst.Store(9) // the next run begins
	if s.refused(9) {
		t.Error("a run without an end is not refused")
	}
}
