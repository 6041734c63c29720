package shm

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// The sizes in the layout are the sizes of the structures.
func TestLayoutKnowsItsParts(t *testing.T) {
	for what, sizes := range map[string][2]uintptr{
		"groupsync.State": {unsafe.Sizeof(groupsync.State{}), groupsync.StateBytes},
		"groupsync.Words": {unsafe.Sizeof(groupsync.Words{}), groupsync.WordsBytes},
		"unmade":          {unsafe.Sizeof(unmade{}), unmadeBytes},
		"stage":           {unsafe.Sizeof(stage{}), stageBytes},
		"reason":          {unsafe.Sizeof(reason{}), reasonBytes},
		"channel":         {unsafe.Sizeof(channel{}), channelHead},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s is %d bytes long, the layout gives it %d", what, sizes[0], sizes[1])
		}
	}
	if n := unsafe.Sizeof(slotHeader{}); n > slotHead {
		t.Errorf("slotHeader is %d bytes long, the layout gives it %d", n, slotHead)
	}
}

// Parts follow each other, each aligned to a pair of cache lines. The default for 8 ranks fits into
// the shared memory of a small container.
func TestLayout(t *testing.T) {
	for ranks := 1; ranks <= 64; ranks *= 2 {
		for _, g := range []Geometry{DefaultGeometry(ranks), SmallestGeometry(ranks), GroupGeometry(ranks), SmallestGeometry(ranks).ofGroup(ranks)} {
			l := g.layout(ranks)
			parts := []int{l.words, l.free, l.states, l.records, l.unmade, l.reasons, l.payloads, l.shown, l.pairs, l.p2pPairs, l.stages, l.pieces, l.pool, l.total}
			for i, p := range parts {
				if p%128 != 0 || i > 0 && p < parts[i-1] {
					t.Errorf("%d ranks, %+v: part %d starts at %d", ranks, g, i, p)
				}
			}
		}
	}
	if n := DefaultGeometry(8).layout(8).total; n > 16<<20 {
		t.Errorf("8 ranks take %d bytes", n)
	}
}

func TestNewHeapRefusesNonsense(t *testing.T) {
	good := DefaultGeometry(2)
	bad := []Geometry{{}, good, good, good, good, good}
	bad[1].Payload = transport.InlineBytes - 1
	bad[2].Slot = 0
	bad[3].Slots = 0
	bad[4].Piece = 20
	bad[5].Slot = 24
	for _, g := range bad {
		if _, err := NewHeap(2, g); err == nil {
			t.Errorf("%+v was accepted", g)
		}
	}
	if _, err := NewHeap(0, good); err == nil {
		t.Error("0 ranks were accepted")
	}
}

// If the pool is used up, the error names it. No two channels get the same part of the arena.
func TestPoolIsBounded(t *testing.T) {
	g := SmallestGeometry(3)
	g.Pool = 2 * g.channelBytes()
	eps, err := NewHeap(3, g)
	if err != nil {
		t.Fatal(err)
	}
	ep := eps[0].(*endpoint)
	first, err1 := ep.outbox(1)
	again, err2 := ep.outbox(1)
	second, err3 := ep.outbox(2)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if first != again || second != first+g.channelBytes() {
		t.Errorf("channels at %d, %d and %d", first, again, second)
	}
	_, err = eps[1].(*endpoint).outbox(0)
	var failed *transport.AllocationFailedError
	if !errors.As(err, &failed) || failed.RequestedBytes != g.channelBytes() {
		t.Errorf("got %v, want an *AllocationFailedError of %d bytes", err, g.channelBytes())
	}
}

// Groups of a few ranks are small, and have room for the messages of all pairs, of calls and of
// P2P.
func TestGroupGeometry(t *testing.T) {
	for ranks := 1; ranks <= 64; ranks++ {
		g := GroupGeometry(ranks)
		if err := g.validate(ranks); err != nil {
			t.Error(err)
		}
		if n := g.layout(ranks).total; ranks <= 8 && n > 3<<20 || n > 6<<20 {
			t.Errorf("%d ranks take %d bytes", ranks, n)
		}
		for _, g := range []Geometry{g, DefaultGeometry(ranks).ofGroup(ranks), SmallestGeometry(ranks).ofGroup(ranks)} {
			if pairs := 2 * ranks * (ranks - 1); ranks <= 8 && pairs*g.channelBytes() > g.Pool {
				t.Errorf("%d ranks: %+v has no room for %d pairs", ranks, g, pairs)
			}
		}
	}
}
