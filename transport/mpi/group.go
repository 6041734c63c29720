//go:build linux && (amd64 || arm64)

package mpi

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/groupsync"
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
	silent  atomic.Bool // it has said that it left, which was its last packet
	nodes   *nodes
	joined  bool // it is the job's, and not made of another one

	partsMu sync.Mutex
	parts   []transport.Endpoint // the levels of the group

	// sending is held by who sends to all ranks. What this rank answers to one of them therefore comes after all that it has
	// sent to any.
	sending sync.Mutex
	sent    [groupsync.StateWords]uint64
	lines   lines

	questions atomic.Uint64
	answers   []answer // by rank
}

// answer is what a rank has answered.
type answer struct {
	number atomic.Uint64            // of the question
	served atomic.Pointer[[]uint64] // by rank, as far as not zero: see groupsync.Served
}

// newGroup returns a group, to which nothing is delivered before process.enter.
func newGroup(p *process, id uint64, rank int, world []int) *group {
	n := len(world)
	g := &group{
		process: p, id: id, rank: rank, world: world, states: make([]*groupsync.State, n), words: new(groupsync.Words),
		slots: make(groupsync.Slots, n), streams: [2]streams{newStreams(n), newStreams(n)}, stages: make([]stage, n), piece: pieceLength(n),
		hello: make([]atomic.Pointer[string], n), answers: make([]answer, n), lines: newLines(n, p.directRanks),
	}
	for i := range n {
		g.states[i] = new(groupsync.State)
		g.slots[i] = [2][]byte{make([]byte, payloadBytes), make([]byte, payloadBytes)}
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

// post sends a packet to a rank, unless this one has left.
func (g *group) post(to int, b []byte) {
	if g.silent.Load() {
		g.process.wire.release(b)
		return
	}
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
	g.sayWords(g.sync.Words(g.rank))
}

// sayWords sends words to all others, if they are new. Those of a rank that has left are its last packet: what it has entered comes before.
// The caller holds sending.
func (g *group) sayWords(words [groupsync.StateWords]uint64) {
	if words == g.sent || g.silent.Load() {
		return
	}
	g.sent = words
	left := groupsync.HasLeft(words)
	if left && !g.lines.direct {
		g.tellOwnLines()
	}
	g.tellAll(head{kind: kindWords, flag: left && g.holdsUp()}, encodeWords(words))
	g.silent.Store(left)
}

// answer answers a question of a rank: with its lines and its words, with lines that the other one lacks, and with how much it has served each
// rank.
func (g *group) answer(to int, question uint64, body []byte) error {
	lacking, err := decodeRanks(body, len(g.world))
	if err != nil {
		return err
	}
	g.sending.Lock()
	defer g.sending.Unlock()
	words := g.sync.Words(g.rank)
	if groupsync.HasLeft(words) {
		g.sayWords(words)
		return nil
	}
	if !g.lines.direct {
		lacking = append(lacking, g.rank)
	}
	g.tellLines(to, lacking...)
	g.tell(to, head{kind: kindAnswer, number: question}, append(encodeWords(words), g.encodeServed()...))
	return nil
}

// encodeServed returns how much this rank has served each rank, without zeros at the end.
func (g *group) encodeServed() (b []byte) {
	last := 0
	for rank := range g.world {
		served := g.served(g.rank, rank)
		b = binary.LittleEndian.AppendUint64(b, served)
		if served != 0 {
			last = len(b)
		}
	}
	return b[:last]
}

func encodeWords(words [groupsync.StateWords]uint64) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// isFarewell reports whether a packet is the last one that a rank sends to a group.
func isFarewell(h head, body []byte) bool {
	return h.kind == kindWords && len(body) == 8*groupsync.StateWords && binary.LittleEndian.Uint64(body[len(body)-8:]) != 0
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
	switch h.kind {
	case kindHello:
		g.hello[h.from].Store(new(string(body)))
	case kindLines:
		err = g.arrivedLines(body)
	case kindWords:
		if _, err = g.update(h, body); h.flag {
			g.goDirect()
		}
		if isFarewell(h, body) {
			g.process.hasLeft(from, h)
		}
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
		err = g.answer(h.from, h.number, body)
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
	if err != nil || len(body)%8 != 0 || len(body) > 8*len(g.world) {
		return errPacket
	}
	served := make([]uint64, len(body)/8)
	for i := range served {
		served[i] = binary.LittleEndian.Uint64(body[8*i:])
	}
	a := &g.answers[h.from]
	a.served.Store(&served)
	a.number.Store(h.number)
	return nil
}
