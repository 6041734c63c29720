//go:build linux && (amd64 || arm64)

package mpi

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/internal/groupsync"
	"github.com/goccl/goccl/transport"
)

// payloadBytes is the length in bytes of the longest payload that travels with a synchronisation. Each rank sends it to all
// others.
const payloadBytes = 4 << 10

// errPacket is the error of a packet that no rank sends.
var errPacket = errors.New("a packet that no rank sends")

// group is a group of ranks as one of them sees it: its own state, and copies of what the others have sent.
type group struct {
	process *process
	id      uint64
	rank    int
	world   []int // by rank: the rank of its process
	states  []*groupsync.State
	words   *groupsync.Words
	sync    *groupsync.Group
	member  *groupsync.Member
	causes  causes
	slots   groupsync.Slots
	streams [2]streams // of calls, of P2P
	stages  []stage
	piece   int                      // length in bytes of the longest piece
	hello   []atomic.Pointer[string] // by rank: what it has said of itself, once it has joined
	rest    rest
	nodes   *nodes

	partsMu sync.Mutex
	parts   []transport.Endpoint // the levels of the group

	// sending is held by who sends to all ranks. What this rank answers to one of them therefore comes after all that it has
	// sent to any.
	sending sync.Mutex
	sent    [groupsync.StateWords]uint64

	questions atomic.Uint64
	answers   []answer // by rank
}

// answer is what a rank has answered.
type answer struct {
	number atomic.Uint64   // of the question
	mute   atomic.Bool     // it has not answered, and sent nothing since
	served []atomic.Uint64 // by rank: see groupsync.Served
}

// newGroup returns a group, to which nothing is delivered before process.enter.
func newGroup(p *process, id uint64, rank int, world []int) *group {
	n := len(world)
	g := &group{
		process: p, id: id, rank: rank, world: world, states: make([]*groupsync.State, n), words: new(groupsync.Words),
		slots: make(groupsync.Slots, n), streams: [2]streams{newStreams(n), newStreams(n)}, stages: make([]stage, n), piece: pieceLength(n),
		hello: make([]atomic.Pointer[string], n), answers: make([]answer, n),
	}
	for i := range n {
		g.states[i] = new(groupsync.State)
		g.slots[i] = [2][]byte{make([]byte, payloadBytes), make([]byte, payloadBytes)}
		g.answers[i].served = make([]atomic.Uint64, n)
	}
	g.causes = causes{send: g.sendReason, failures: make([]*transport.Failure, n), reasons: make([][2]reason, n)}
	g.rest = rest{group: g}
	g.sync = groupsync.NewGroup(g.states, g.words, &g.causes, &g.rest)
	g.member = groupsync.NewMember(g.sync, rank, g.slots, false) // rest polls
	return g
}

// packet returns a packet of this rank with room for a body of n bytes.
func (g *group) packet(h head, n int) []byte {
	b := g.process.wire.packet(headBytes + n)
	h.from, h.group = g.rank, g.id
	h.put(b)
	return b
}

// post sends a packet to a rank.
func (g *group) post(to int, b []byte) {
	if err := g.process.wire.send(g.world[to], b); err != nil {
		g.process.broken(err)
	}
}

// tellAll sends a packet of that body to all other ranks.
func (g *group) tellAll(h head, body []byte) {
	for to := range g.world {
		if to != g.rank {
			g.tell(to, h, body)
		}
	}
}

func (g *group) tell(to int, h head, body []byte) {
	b := g.packet(h, len(body))
	copy(b[headBytes:], body)
	g.post(to, b)
}

// lineHead is the length of what precedes the payload of a line: the hash and the fingerprint.
const lineHead = 8 + 8*len(transport.Fingerprint{})

// sendLine sends what this rank brings to a call to all others.
func (g *group) sendLine(e *transport.Arrival) {
	g.sending.Lock()
	defer g.sending.Unlock()
	for to := range g.world {
		if to == g.rank {
			continue
		}
		b := g.packet(head{kind: kindLine, number: e.Seq}, lineHead+len(e.Payload))
		body := b[headBytes:]
		binary.LittleEndian.PutUint64(body, e.Hash)
		for i, w := range e.Fingerprint {
			binary.LittleEndian.PutUint64(body[8+8*i:], w)
		}
		copy(body[lineHead:], e.Payload)
		g.post(to, b)
	}
}

// line stores the line that a rank has sent.
func (g *group) line(h head, body []byte) error {
	if len(body) < lineHead || len(body) > lineHead+payloadBytes {
		return errPacket
	}
	var f transport.Fingerprint
	for i := range f {
		f[i] = binary.LittleEndian.Uint64(body[8+8*i:])
	}
	payload := body[lineHead:]
	if len(payload) > transport.InlineBytes {
		copy(g.slots[h.from][h.number&1], payload)
	}
	g.sync.Arrive(h.from, h.number, binary.LittleEndian.Uint64(body), f, payload)
	return nil
}

// sendReason sends why this rank refuses a call.
func (g *group) sendReason(seq uint64, first bool, why string) {
	g.sending.Lock()
	defer g.sending.Unlock()
	g.tellAll(head{kind: kindReason, flag: first, number: seq}, []byte(why))
}

// sendWords sends the words of this rank's state to all others, if they have changed since.
func (g *group) sendWords() {
	g.sending.Lock()
	defer g.sending.Unlock()
	words := g.sync.Words(g.rank)
	if words == g.sent {
		return
	}
	g.sent = words
	g.tellAll(head{kind: kindWords}, encodeWords(words))
}

// answer answers a question of a rank: with its words, and with how much it has served each rank.
func (g *group) answer(to int, question uint64) {
	g.sending.Lock()
	defer g.sending.Unlock()
	b := encodeWords(g.sync.Words(g.rank))
	for rank := range g.world {
		b = binary.LittleEndian.AppendUint64(b, g.served(g.rank, rank))
	}
	g.tell(to, head{kind: kindAnswer, number: question}, b)
}

func encodeWords(words [groupsync.StateWords]uint64) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// update stores the words that a rank has sent, and returns the rest of the body.
func (g *group) update(h head, body []byte) ([]byte, error) {
	var words [groupsync.StateWords]uint64
	if len(body) < 8*len(words) {
		return nil, errPacket
	}
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(body[8*i:])
	}
	g.sync.Update(g.rank, h.from, words)
	return body[8*len(words):], nil
}

// receive handles a packet for the group. keep reports that the packet is kept.
func (g *group) receive(from int, h head, body, packet []byte) (keep bool, err error) {
	if h.from >= len(g.world) || g.world[h.from] != from {
		return false, errPacket
	}
	if a := &g.answers[h.from]; a.mute.Load() {
		a.mute.Store(false)
	}
	switch h.kind {
	case kindHello:
		g.hello[h.from].Store(new(string(body)))
	case kindLine:
		err = g.line(h, body)
	case kindWords:
		_, err = g.update(h, body)
	case kindReason:
		g.causes.put(h.from, h.number, h.flag, string(body))
	case kindPart:
		keep, err = g.arrived(h, body, packet)
	case kindTaken:
		out := &g.streams[index(h.flag)].out[h.from]
		if h.number > out.posted.Load() {
			return false, errPacket
		}
		out.taken.Store(h.number)
	case kindRound:
		err = g.showed(h, body)
	case kindQuestion:
		g.answer(h.from, h.number)
	case kindAnswer:
		err = g.answered(h, body)
	case kindPropose, kindFailed:
		err = g.heardFailure(h, body)
	case kindConclude:
		g.conclude(h.flag)
	case kindVerdict:
		g.sync.SetVerdict(h.flag)
	default:
		return false, errPacket
	}
	g.rest.wakeOwn()
	return keep, err
}

// answered stores a rank's answer.
func (g *group) answered(h head, body []byte) error {
	body, err := g.update(h, body)
	if err != nil || len(body) != 8*len(g.world) {
		return errPacket
	}
	a := &g.answers[h.from]
	for i := range a.served {
		a.served[i].Store(binary.LittleEndian.Uint64(body[8*i:]))
	}
	a.number.Store(h.number)
	return nil
}
