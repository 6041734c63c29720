package groupsync

import (
	"testing"
	"unsafe"
)

// The layout matches the comments. Processes rely on it.
func TestLayout(t *testing.T) {
	var (
		l line
		s State
		w Words
	)
	for what, c := range map[string][2]uintptr{
		"size of line":        {unsafe.Sizeof(l), 128},
		"line.hash":           {unsafe.Offsetof(l.hash), 8},
		"line.payload":        {unsafe.Offsetof(l.payload), 16},
		"line.fingerprint":    {unsafe.Offsetof(l.fingerprint), 64},
		"size of State":       {unsafe.Sizeof(s), StateBytes},
		"State.done":          {unsafe.Offsetof(s.done), 256},
		"State.out":           {unsafe.Offsetof(s.out), 264},
		"State.rejectedFirst": {unsafe.Offsetof(s.rejectedFirst), 272},
		"State.rejectedLast":  {unsafe.Offsetof(s.rejectedLast), 280},
		"State.departed":      {unsafe.Offsetof(s.departed), 288},
		"State.waitOn":        {unsafe.Offsetof(s.waitOn), 296},
		"State.token":         {unsafe.Offsetof(s.token), 304},
		"State.resting":       {unsafe.Offsetof(s.resting), 384},
		"State.p2pToken":      {unsafe.Offsetof(s.p2pToken), 392},
		"State.p2pWaitOn":     {unsafe.Offsetof(s.p2pWaitOn), 400},
		"size of Words":       {unsafe.Sizeof(w), WordsBytes},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %d, want %d", what, c[0], c[1])
		}
	}
}

// States on the heap are aligned to a pair of cache lines: the runtime aligns objects without
// pointers whose size is a power of two.
func TestAlignment(t *testing.T) {
	states := make([]*State, 100)
	for i := range states {
		states[i] = new(State)
		if uintptr(unsafe.Pointer(states[i]))%128 != 0 {
			t.Fatalf("state %d lies at %p", i, states[i])
		}
	}
}

// The two words that describe a run of rejected calls may be read from two runs. Such a mixture
// covers only calls that all ranks have entered.
func TestRejectedRun(t *testing.T) {
	var s State
	if s.hasRejected(1) {
		t.Error("no call was rejected yet")
	}
	s.rejectedFirst.Store(5)
	if s.hasRejected(5) {
		t.Error("a run without an end is not rejected")
	}
	s.rejectedLast.Store(7)

	for seq := uint64(1); seq < 10; seq++ {
		if s.hasRejected(seq) != (seq >= 5 && seq <= 7) {
			t.Errorf("call %d: rejected is %v", seq, s.hasRejected(seq))
		}
	}
	s.rejectedFirst.Store(9) // the next run starts
	if s.hasRejected(9) {
		t.Error("a run without an end is not rejected")
	}
}
