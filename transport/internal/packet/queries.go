package packet

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// A query asks another rank for what it has published. The reply has the words of its state, and
// the lines that the querying rank lacks come before it.

// queries are those of one rank, and what the others have replied.
type queries struct {
	number  interleave.Uint64 // of the last query
	replies []reply           // by rank
}

// reply is the last one of a rank.
type reply struct {
	query  interleave.Uint64            // its number
	served interleave.Pointer[[]uint64] // by rank, as far as not zero: see groupsync.Served
}

// servedBy returns how much a rank has served another one, as its last reply has it.
func (q *queries) servedBy(by, of int) uint64 {
	if served := q.replies[by].served.Load(); served != nil && of < len(*served) {
		return (*served)[of]
	}
	return 0
}

// CatchUp implements groupsync.Remote. It queries once more for lines of ranks that have not
// replied.
func (r *rest) CatchUp() {
	g := r.group
	before := g.missingLines()
	g.process.waitUntil(context.Background(), r.StartCatchUp())
	if len(g.missingLines()) > len(before) {
		g.process.waitUntil(context.Background(), r.StartCatchUp())
	}
}

// StartCatchUp implements groupsync.Remote. It queries all other ranks, whose replies come after
// all that they have sent before. It does not wait again for a rank that has not replied within the
// member's patience, until that one sends something.
func (r *rest) StartCatchUp() (isDone func() bool) {
	g := r.group
	if g.saidGoodbye.Load() {
		return func() bool { return true }
	}
	query, body := g.queries.number.Add(1), encodeRanks(g.missingLines())
	var asked []int
	for rank := range g.processOf {
		if rank != g.rank && g.isResponsive(rank) {
			asked = append(asked, rank)
			g.sendTo(rank, head{kind: kindQuery, number: query}, body)
		}
	}

	begin, patience := time.Now(), g.member.Patience()
	isPending := func(rank int) bool { return g.queries.replies[rank].query.Load() < query && g.isThere(rank) }
	return func() bool {
		for len(asked) > 0 && !isPending(asked[0]) {
			asked = asked[1:]
		}
		if len(asked) > 0 && time.Since(begin) < patience {
			return false
		}

		for _, rank := range asked {
			if isPending(rank) {
				g.process.unresponsive[g.processOf[rank]].Store(true)
				g.sync.ForgetWaits(rank)
			}
		}
		asked = nil
		return true
	}
}

// replyTo replies to the query of a rank: with this rank's lines and words, with lines that the
// other one lacks, and with how much this rank has served each rank.
func (g *group) replyTo(to int, query uint64, body []byte) error {
	missing, err := decodeRanks(body, len(g.processOf))
	if err != nil {
		return err
	}
	g.sending.Lock()
	defer g.sending.Unlock()
	words := g.sync.Words(g.rank)
	if groupsync.HasDeparted(words) {
		g.sendNewWords(words)
		return nil
	}

	if on := g.levels.waitsFor(); on >= 0 {
		groupsync.SetWaitOn(&words, on)
		g.sent[groupsync.StateWords-1] = ^uint64(0) // so that the next words go to all
	}

	if !g.lines.direct {
		missing = append(missing, g.rank)
	}
	g.lines.sendKnown(to, missing...)
	g.sendTo(to, head{kind: kindReply, number: query}, append(encodeWords(words), g.encodeServed()...))
	return nil
}

// handleReply stores a rank's reply.
func (g *group) handleReply(h head, body []byte) error {
	body, err := g.storeWords(h, body)
	if err != nil || len(body)%8 != 0 || len(body) > 8*len(g.processOf) {
		return errBadPacket
	}
	served := make([]uint64, len(body)/8)
	for i := range served {
		served[i] = binary.LittleEndian.Uint64(body[8*i:])
	}
	r := &g.queries.replies[h.from]
	r.served.Store(&served)
	r.query.Store(h.number)
	return nil
}

// encodeServed returns how much this rank has served each rank, without zeros at the end.
func (g *group) encodeServed() (b []byte) {
	last := 0
	for rank := range g.processOf {
		served := g.servedBy(g.rank, rank)
		b = binary.LittleEndian.AppendUint64(b, served)
		if served != 0 {
			last = len(b)
		}
	}
	return b[:last]
}

// missingLines returns the ranks that cannot reply and whose lines of the current call are not
// here.
func (g *group) missingLines() []int {
	return g.lines.missing(func(rank int) bool { return !g.isResponsive(rank) })
}

// encodeRanks returns ranks as they travel.
func encodeRanks(ranks []int) (b []byte) {
	for _, rank := range ranks {
		b = binary.LittleEndian.AppendUint32(b, uint32(rank))
	}
	return b
}

// decodeRanks returns what encodeRanks has made, in a group of size.
func decodeRanks(b []byte, size int) (ranks []int, err error) {
	for ; len(b) >= 4; b = b[4:] {
		rank := binary.LittleEndian.Uint32(b)
		if int64(rank) >= int64(size) {
			return nil, errBadPacket
		}
		ranks = append(ranks, int(rank))
	}
	if len(b) > 0 {
		return nil, errBadPacket
	}
	return ranks, nil
}
