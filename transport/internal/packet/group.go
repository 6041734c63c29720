package packet

import (
	"encoding/binary"
	"errors"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
)

// payloadBytes is the length in bytes of the longest payload that travels with a synchronisation.
// Each rank sends it to all others.
const payloadBytes = 4 << 10

// errBadPacket is the error of a packet that a rank of this program would not have sent.
var errBadPacket = errors.New("a packet that no rank sends")

// group is a group of ranks as one of them sees it: its own state, and copies of what the others
// have sent.
type group struct {
	sender
	sync     *groupsync.Group
	member   *groupsync.Member
	rest     rest                         // how this rank waits
	sent     [groupsync.StateWords]uint64 // this rank's words as the others have them; sending guards them
	causes   causes
	slots    groupsync.Slots // payloads that are too long for a line
	lines    lines
	queries  queries
	streams  [2]streams                   // messages: of calls, and of P2P
	stages   stages                       // copies for views
	joinedAs []interleave.Pointer[string] // by rank: the description of its process, once it has joined
	nodes    *nodes                       // where the ranks are
	levels   levels                       // fail with the group
	isWorld  bool                         // it is the job's, and not made of another one
}

// newGroup returns a group. Packets reach it only after process.addGroup.
func newGroup(p *Process, id uint64, rank int, processOf []int) *group {
	n := len(processOf)
	g := &group{
		sender:   sender{process: p, id: id, rank: rank, processOf: processOf},
		slots:    make(groupsync.Slots, n),
		queries:  queries{replies: make([]reply, n)},
		streams:  [2]streams{newStreams(n), newStreams(n)},
		stages:   newStages(p.pieceBytes, n),
		joinedAs: make([]interleave.Pointer[string], n),
	}

	states := make([]*groupsync.State, n)
	for i := range n {
		states[i] = new(groupsync.State)
		g.slots[i] = [2][]byte{make([]byte, payloadBytes), make([]byte, payloadBytes)}
	}

	g.causes = causes{
		send:     g.sendReason,
		failures: make([]*transport.Failure, n),
		reasons:  make([][2]reason, n),
	}
	g.rest = newRest(g)
	g.sync = groupsync.NewGroup(states, new(groupsync.Words), &g.causes, &g.rest)
	g.member = groupsync.NewMember(g.sync, rank, g.slots, false) // rest polls
	g.lines = newLines(&g.sender, g.storeLine)
	return g
}

// sendReason sends why this rank rejects a call.
func (g *group) sendReason(seq uint64, first bool, why string) {
	g.sending.Lock()
	defer g.sending.Unlock()
	g.sendToAll(head{kind: kindReason, flag: first, number: seq}, []byte(why))
}

// sendWords sends the words of this rank's state to all others, unless they have them.
func (g *group) sendWords() {
	g.sending.Lock()
	defer g.sending.Unlock()
	g.sendNewWords(g.sync.Words(g.rank))
}

// hasSentDone reports whether the others learn of the last call that this rank has completed.
func (g *group) hasSentDone() bool {
	g.sending.Lock()
	defer g.sending.Unlock()
	return g.sent[0] == g.sync.Words(g.rank)[0]
}

// sendNewWords sends words to all others, unless they have them. The caller holds sending.
//
// The words of a rank that leaves are its last packet. The lines of the calls that it has entered
// go before them, and those of ranks that cannot reply: no other rank may be left to ask.
func (g *group) sendNewWords(words [groupsync.StateWords]uint64) {
	if words == g.sent || g.saidGoodbye.Load() {
		return
	}
	g.sent = words

	isLeaving := groupsync.HasDeparted(words)
	if isLeaving {
		g.lines.sendLines(g.lastLines()...)
	}
	g.sendToAll(head{kind: kindWords, flag: isLeaving && g.lines.mayHoldUp()}, encodeWords(words))
	g.saidGoodbye.Store(isLeaving)
}

// lastLines returns the ranks whose lines this one sends when it leaves. The caller holds sending.
func (g *group) lastLines() (ranks []int) {
	for rank := range g.processOf {
		if rank == g.rank && !g.lines.direct || rank != g.rank && !g.sync.HasDeparted(rank) && !g.isResponsive(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func encodeWords(words [groupsync.StateWords]uint64) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// isGoodbye reports whether a packet is the last one that a rank sends to a group: its words, of
// which the last one says that it has left.
func isGoodbye(h head, body []byte) bool {
	return h.kind == kindWords && len(body) == 8*groupsync.StateWords && binary.LittleEndian.Uint64(body[len(body)-8:]) != 0
}

// storeWords stores the words that a rank has sent, and returns the rest of the body.
func (g *group) storeWords(h head, body []byte) ([]byte, error) {
	var words [groupsync.StateWords]uint64
	if len(body) < 8*len(words) {
		return nil, errBadPacket
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(body[8*i:])
	}
	g.sync.Update(g.rank, h.from, words)
	return body[8*len(words):], nil
}

// isFrom reports whether a packet is from a rank of the group that is in that process.
func (g *group) isFrom(h head, process int) bool {
	return h.from < len(g.processOf) && g.processOf[h.from] == process
}

// handle handles a packet for the group, from a process. isKept reports that the group keeps the
// packet's memory until the rank has taken what is in it.
func (g *group) handle(from int, h head, body, packet []byte, isPlaced bool) (isKept bool, err error) {
	if !g.isFrom(h, from) {
		return false, errBadPacket
	}

	switch h.kind {
	case kindJoined:
		g.joinedAs[h.from].Store(new(string(body)))
	// What a rank publishes.
	case kindLines:
		err = g.lines.handle(body)
	case kindWords:
		_, err = g.storeWords(h, body)
		if h.flag { // the rank leaves, and lines of others may have been on their way through it
			g.lines.switchToDirect()
		}
		if isGoodbye(h, body) {
			g.process.noteGoodbye(from, h)
		}
	case kindReason:
		g.causes.storeReason(h.from, h.number, h.flag, string(body))
	// Messages and views.
	case kindPart:
		isKept, err = g.handlePart(h, body, packet)
	case kindTaken:
		out := &g.streams[streamIndex(h.flag)].out[h.from]
		if h.number > out.posted.Load() {
			return false, errBadPacket
		}
		out.taken.Store(h.number)
	case kindRound:
		err = g.handleRound(h, body, isPlaced)
	// What ranks ask of each other, and decide together.
	case kindQuery:
		err = g.replyTo(h.from, h.number, body)
	case kindReply:
		err = g.handleReply(h, body)
	case kindPropose, kindFailed:
		err = g.handleFailure(h, body)
	// Whether the group was formed.
	case kindConclude:
		g.decideVerdict(h.flag)
	case kindVerdict:
		g.sync.SetVerdict(h.flag)
	default:
		return false, errBadPacket
	}

	g.rest.wakeRank()
	return isKept, err
}

// storeLine stores the line of a rank that has arrived.
func (g *group) storeLine(rank int, number uint64, encoded []byte) {
	var f transport.Fingerprint
	for i := range f {
		f[i] = binary.LittleEndian.Uint64(encoded[8+8*i:])
	}
	payload := encoded[lineHead:]
	if len(payload) > transport.InlineBytes {
		copy(g.slots[rank][number&1], payload)
	}
	g.sync.Arrive(rank, number, binary.LittleEndian.Uint64(encoded), f, payload)
}

// addLevel adds the endpoint of a level of members, which fails once the group has failed.
func (g *group) addLevel(ep transport.Endpoint, members []int) {
	g.levels.add(ep, members)
	if f := g.failure(); f != nil {
		g.levels.fail(f)
	}
}

// setFailed makes the failure of rank `by` the group's in this process, unless it has one already.
// It reports whether it did.
func (g *group) setFailed(by int) bool {
	if !g.sync.SetFailed(g.rank, by) {
		return false
	}
	g.levels.fail(g.failure())
	return true
}

// failHere fails the group in this process.
func (g *group) failHere(f *transport.Failure) {
	g.member.FailHere(f)
	g.levels.fail(g.failure())
}

// failHere fails the endpoint's group in this process.
func (ep *Endpoint) failHere(f *transport.Failure) { ep.group.failHere(f) }

// failure returns the group's failure in this process; nil if it has none.
func (g *group) failure() *transport.Failure {
	if by := g.sync.FailedBy(); by >= 0 {
		return g.causes.Load(by)
	}
	return nil
}
