package shm

import (
	"fmt"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// Geometry sets the sizes of the parts of an arena, in bytes except for Slots.
type Geometry struct {
	Payload int // longest payload that travels with a synchronisation; at least transport.InlineBytes
	Slot    int // one message slot, a multiple of 16; at least 16
	Slots   int // number of slots per ordered pair of ranks; at least 1
	Pool    int // room for the slots of all pairs that exchange messages
	Piece   int // longest piece of a view, a multiple of 16; at least 16
	Flight  int // memory of one rank for the flight recorder: flight.PartBytes, or 0 for none
}

// DefaultGeometry returns the sizes for production use: less than 16 MiB for 8 ranks. Pages
// that no rank uses are never touched.
//
//   - Reducing the payloads of all ranks pays off up to 128 KiB in total and 64 KiB per rank. With
//     two ranks, each on a core, staging is as fast from 8 KiB on.
//   - Pieces of 512 KiB are long enough for the synchronisation that each costs. With more than
//     four ranks, the pieces of all ranks share 8 MiB.
//   - The pool has room for all pairs of up to 32 ranks, for messages of calls and for P2P.
//   - A rank records its calls on all groups in the memory of the job, so groups have none.
func DefaultGeometry(ranks int) Geometry {
	ranks = max(ranks, 1)
	g := Geometry{
		Payload: min(max(128<<10/ranks, 1<<10), 64<<10),
		Slots:   2,
		Pool:    4 << 20,
		Piece:   min(max(2<<20/ranks, 16<<10), 512<<10) &^ 127,
		Flight:  flight.PartBytes(ranks),
	}
	if ranks == 2 {
		g.Payload = 8 << 10
	}
	if ranks > 8 {
		g.Pool = 8 << 20
	}
	pairs := max(2*ranks*(ranks-1), 1)
	g.Slot = min(max(g.Pool/pairs/g.Slots-512, 1<<10), 16<<10) &^ 127
	return g
}

// SmallestGeometry returns the smallest sizes with which a kernel must be correct: one slot, and
// pieces of a few elements.
func SmallestGeometry(ranks int) Geometry {
	g := Geometry{Payload: transport.InlineBytes, Slot: 16, Slots: 1, Piece: 144}
	g.Pool = 2 * ranks * ranks * g.channelBytes()
	return g
}

// GroupGeometry returns the sizes for a group that ranks of another group form. A job may have
// many, so they are small: less than 3 MiB for up to 8 ranks.
//
//   - Payloads up to 4 KiB travel with the synchronisation, since their latency matters. Longer
//     inputs are staged.
//   - The pieces of all ranks share 1 MiB per half: as long as the job's for two ranks, since calls
//     of 1 MiB take up to 2.5 times as long with pieces of 64 KiB.
//   - The pool has room for all pairs of up to 8 ranks, for messages of calls and for P2P. With
//     more ranks it has room for sixteen pairs per rank.
func GroupGeometry(ranks int) Geometry {
	ranks = max(ranks, 1)
	g := Geometry{
		Payload: min(DefaultGeometry(ranks).Payload, 4<<10),
		Slots:   2,
		Pool:    256 << 10,
		Piece:   min(max(1<<20/ranks, 4<<10), 512<<10) &^ 127,
	}
	pairs := max(ranks*min(2*(ranks-1), 16), 1)
	g.Slot = min(max(g.Pool/pairs/g.Slots-512, 1<<10), 16<<10) &^ 127
	g.Pool = max(g.Pool, pairs*g.channelBytes())
	return g
}

// ofGroup is GroupGeometry for a group whose parent has geometry g. No part, except the pool, is
// larger than the parent's.
func (g Geometry) ofGroup(ranks int) Geometry {
	of := GroupGeometry(ranks)
	of.Payload, of.Piece = min(of.Payload, g.Payload), min(of.Piece, g.Piece)
	of.Slot, of.Slots = min(of.Slot, g.Slot), min(of.Slots, g.Slots)
	return of
}

func (g Geometry) validate(ranks int) error {
	switch {
	case ranks < 1:
		return fmt.Errorf("shm: %d ranks, want at least 1", ranks)
	case g.Payload < transport.InlineBytes || g.Slot < 16 || g.Slot%16 != 0 || g.Slots < 1 || g.Pool < 0 || g.Piece < 16 || g.Piece%16 != 0 || g.Flight != 0 && g.Flight != flight.PartBytes(ranks):
		return fmt.Errorf("shm: geometry %+v: want Payload >= %d, Slots >= 1, Pool >= 0, and Slot and Piece multiples of 16",
			g, transport.InlineBytes)
	}
	return nil
}

// layout holds the offsets of the parts of the arena, in their order. Each part starts at a
// multiple of 128. R is the number of ranks, F is Flight, P and W are Payload and Piece rounded up
// to 128:
//
//	flights     R * F         the ranks' flight recorders; first, so that readers need no other size
//	words       128           the group's words
//	free        128           bytes of the pool taken so far
//	states      R * 512       the ranks' lines
//	records     R * 1280      the ranks' failures
//	unmade      R * 2 * 1408  the latest calls whose groups a rank could not make; see unmade
//	reasons     R * 512       why ranks rejected calls; see reason
//	payloads    R * 2 * P     payloads too long for a line
//	shown       R * 2 * 128   where the ranks' buffers lie in regions
//	pairs       R * R * 8     offsets of the channels of calls, by pair; 0: none yet
//	p2pPairs    R * R * 8     offsets of the channels of P2P, by pair; 0: none yet
//	stages      R * 128       the ranks' positions in rounds
//	pieces      R * 2 * W     two staged inputs per rank, and results in their place
//	pool        Pool          channels, taken on first use
type layout struct {
	ranks                                                                                                 int
	flights                                                                                               int
	words, free, states, records, reasons, unmade, payloads, shown, pairs, p2pPairs, stages, pieces, pool int
	payload, piece                                                                                        int // aligned lengths
	total                                                                                                 int
}

func (g Geometry) layout(ranks int) layout {
	l := layout{ranks: ranks, payload: align(g.Payload), piece: align(g.Piece)}
	part := func(n int) (offset int) {
		offset = l.total
		l.total += align(n)
		return offset
	}
	l.flights = part(ranks * g.Flight)
	l.words = part(groupsync.WordsBytes)
	l.free = part(8)
	l.states = part(ranks * groupsync.StateBytes)

	l.records = part(ranks * recordBytes)
	l.unmade = part(ranks * unmadeSlots * unmadeBytes)
	l.reasons = part(ranks * 2 * reasonBytes)
	l.payloads = part(ranks * 2 * l.payload)
	l.shown = part(ranks * 2 * shownBytes)
	l.pairs = part(ranks * ranks * 8)
	l.p2pPairs = part(ranks * ranks * 8)
	l.stages = part(ranks * stageBytes)
	l.pieces = part(ranks * 2 * l.piece)
	l.pool = part(g.Pool)
	return l
}

// align rounds up to a multiple of 128: processors fetch cache lines in pairs.
func align(n int) int { return (n + 127) &^ 127 }
