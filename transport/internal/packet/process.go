package packet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// Process is this process among those of the job: it hands the packets that arrive to their groups.
type Process struct {
	name         string // of the transport
	wire         Wire
	deaths       deaths
	saidGoodbye  []interleave.Bool // by rank: its process sends nothing more
	unresponsive []interleave.Bool // by rank: its process has not replied, and has sent nothing since
	hasNewDeaths interleave.Bool   // a death was found; poll has not switched the lines of groups yet
	closed       interleave.Bool   // no goroutine polls any more

	describe    func() string                                                                     // describes this process to the others
	connectNode func(ctx context.Context, first host, rank, size int) (transport.Endpoint, error) // connects the processes of a node
	wrap        func(*Endpoint) transport.Endpoint

	directRanks int // groups of more ranks send lines in rounds
	pieceBytes  int // of the longest piece of a view in a group of few ranks

	polling interleave.Mutex
	pausing
	awaiting

	mu            interleave.Mutex // guards the fields below
	groups        map[uint64]*entry
	openEndpoints int           // endpoints that were not closed
	stop          chan struct{} // ends tend, while endpoints are open
	err           error         // of the wire
}

// entry is a group of the process, or packets for one that it has not made yet. The entry of a
// freed group stays until all other ranks have left it or died, and send nothing more for it.
type entry struct {
	group     *group // nil: not made yet, or freed
	isFreed   bool
	early     []earlyPacket
	processOf []int  // by rank: the rank of its process; nil: not made yet
	hasLeft   []bool // by rank: it has left
}

// earlyPacket is a packet that has arrived before the group was made.
type earlyPacket struct {
	from   int
	packet []byte
}

// Config is what a transport has of its own.
type Config struct {
	// Name is the transport's name in ccl.yaml.
	Name string
	Wire Wire
	// Node tells processes of one machine apart that share no memory: those with different ones.
	Node int
	// PIDs are the ids of the processes, by rank; nil: they are known once all have joined.
	PIDs []int
	// Wrap, unless nil, returns what an endpoint is for the users of the transport.
	Wrap func(*Endpoint) transport.Endpoint
	// DirectRanks is the number of ranks of the largest group in which each sends its line to all
	// others itself; 0: a number that is good for most.
	DirectRanks int
	// PieceBytes is the length in bytes of the longest piece of a view, of which a packet carries two;
	// 0: so much that packets are no longer than MaxBytes.
	PieceBytes int
}

// NewProcess returns this process, which no rank has joined yet.
func NewProcess(c Config) *Process {
	n := c.Wire.Size()
	p := &Process{
		name: c.Name, wire: c.Wire, wrap: c.Wrap, directRanks: c.DirectRanks, pieceBytes: c.PieceBytes, deaths: newDeaths(n, c.PIDs),
		describe:    func() string { return describeHost(c.Node) },
		saidGoodbye: make([]interleave.Bool, n), unresponsive: make([]interleave.Bool, n),
		groups: make(map[uint64]*entry),
	}
	p.connectNode = p.connectByMemory

	if p.directRanks == 0 {
		p.directRanks = directRanks
	}
	if p.pieceBytes == 0 {
		p.pieceBytes = pieceBytes
	}
	if p.wrap == nil {
		p.wrap = func(ep *Endpoint) transport.Endpoint { return ep }
	}
	p.awaiter, _ = c.Wire.(Awaiter)
	p.attention = make(chan struct{}, 1)
	return p
}

// Shut makes the process poll its wire no more. All endpoints were closed.
func (p *Process) Shut() {
	p.closed.Store(true)
	p.polling.Lock() // and never unlocked
}

// addGroup makes a group of the process, and handles what has arrived for it. It returns false if
// there is or was one with that id.
func (p *Process) addGroup(g *group) bool {
	p.polling.Lock() // nothing arrives meanwhile
	defer p.polling.Unlock()
	p.mu.Lock()
	e := p.entryOf(g.id)
	if e.group != nil || e.isFreed {
		p.mu.Unlock()
		return false
	}

	early := e.early
	e.group, e.early, e.processOf, e.hasLeft = g, nil, g.processOf, make([]bool, len(g.processOf))
	e.hasLeft[g.rank] = true
	if p.openEndpoints++; p.openEndpoints == 1 {
		p.startTending()
	}
	p.mu.Unlock()

	for _, e := range early {
		if !p.handlePacket(g, e.from, e.packet, false) {
			p.wire.Release(e.packet)
		}
	}
	return true
}

// copyPacket returns a copy of a packet, in memory of the wire.
func (p *Process) copyPacket(b []byte) []byte { return append(p.wire.Packet(len(b), 0)[:0], b...) }

// entryOf returns the entry of a group. The caller holds mu.
func (p *Process) entryOf(id uint64) *entry {
	e := p.groups[id]
	if e == nil {
		e = new(entry)
		p.groups[id] = e
	}
	return e
}

// noteClosed notes that an endpoint was closed. No goroutine remains once all are.
func (p *Process) noteClosed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.openEndpoints--; p.openEndpoints == 0 {
		interleave.Step()
		close(p.stop)
		if p.awaiter != nil {
			p.awaiter.Wake()
		}
	}
}

// removeGroup removes a group that was freed.
func (p *Process) removeGroup(g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entryOf(g.id)
	e.group, e.isFreed = nil, true
	p.dropEntry(g.id, e)
}

// dropEntry removes the entry of a freed group of which no packet can come any more. The caller
// holds mu.
func (p *Process) dropEntry(id uint64, e *entry) {
	for rank, hasLeft := range e.hasLeft {
		if !hasLeft && !p.isDead(e.processOf[rank]) {
			return
		}
	}
	if e.isFreed {
		delete(p.groups, id)
	}
}

// noteGoodbye notes that a rank has sent its last packet for a group.
func (p *Process) noteGoodbye(from int, h head) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.groups[h.group]; e != nil && h.from < len(e.processOf) && e.processOf[h.from] == from {
		e.hasLeft[h.from] = true
		p.dropEntry(h.group, e)
	}
}

// poll handles packets that have arrived, and reports whether there were any. If another goroutine
// does that it returns false at once.
func (p *Process) poll() (found bool) {
	p.looks.Add(1)
	found, _ = p.look()
	return found
}

// look is poll. isFree reports that no other goroutine does that.
func (p *Process) look() (found, isFree bool) {
	if !p.polling.TryLock() {
		return false, false
	}
	defer p.polling.Unlock()

	found, err := p.wire.Poll(p)
	if err != nil {
		p.handleWireError(err)
	}
	if p.hasNewDeaths.Load() && p.hasNewDeaths.Swap(false) {
		p.rerouteLines()
	}
	return found, true
}

// rerouteLines makes groups of ranks that have died send lines directly.
func (p *Process) rerouteLines() {
	for _, g := range p.allGroups() {
		if slices.ContainsFunc(g.processOf, p.isDead) {
			g.lines.switchToDirect()
		}
	}
}

// allGroups returns the groups of the process.
func (p *Process) allGroups() (all []*group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.sortedGroups() {
		if g := p.groups[id].group; g != nil {
			all = append(all, g)
		}
	}
	return all
}

// sortedGroups returns the ids of entries, in the same order under each seed. The caller holds mu.
func (p *Process) sortedGroups() []uint64 { return slices.Sorted(maps.Keys(p.groups)) }

// waitAtMost is waitUntil for at most that long.
func (p *Process) waitAtMost(limit time.Duration, done func() bool) {
	ctx, cancel := interleave.WithTimeout(context.Background(), limit)
	defer cancel()
	p.waitUntil(ctx, done)
}

// waitUntil polls until done returns true or ctx ends.
func (p *Process) waitUntil(ctx context.Context, done func() bool) {
	nap := napTime
	for begin := time.Now(); !done() && ctx.Err() == nil; {
		if p.poll() {
			nap = napTime
			continue
		}

		if p.polls(time.Since(begin)) {
			yield()
		} else {
			interleave.Sleep(nap)
			nap = min(2*nap, longestNap)
		}
	}
}

// Locate implements Receiver.
func (p *Process) Locate(from int, first []byte, n int) (rest Body, isKnown bool) {
	h, body, err := parsePacket(first)
	if err != nil || h.kind != kindRound {
		return rest, false
	}
	g := p.groupOf(h.group)
	if g == nil || !g.isFrom(h, from) {
		return rest, false
	}
	in, result, err := g.parseRound(h, body)
	if err != nil || n-len(first) != in.length()+result.length() {
		return rest, false // Deliver returns the error
	}
	return g.placeRound(h, in, result), true
}

// groupOf returns the group of that id, nil if the process has none.
func (p *Process) groupOf(id uint64) *group {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.groups[id]; e != nil {
		return e.group
	}
	return nil
}

// Deliver implements Receiver.
func (p *Process) Deliver(from int, b []byte, isPlaced bool) (isKept bool) {
	h, body, err := parsePacket(b)
	if err != nil {
		p.handleWireError(err)
		return false
	}
	if p.unresponsive[from].Load() {
		p.unresponsive[from].Store(false)
	}
	if h.group == 0 {
		p.handleProcessPacket(from, h)
		return false
	}

	// Hand it to its group, or keep it until that is made.
	p.mu.Lock()
	if p.groups[h.group] == nil && p.isDead(from) { // the entry was dropped
		p.mu.Unlock()
		return false
	}
	e := p.entryOf(h.group)
	g := e.group
	if g == nil && !e.isFreed {
		e.early = append(e.early, earlyPacket{from, p.copyPacket(b)})
		p.mu.Unlock()
		return false
	}
	p.mu.Unlock()

	switch {
	case g != nil:
		return p.handlePacket(g, from, b, isPlaced)
	case isGoodbye(h, body):
		p.noteGoodbye(from, h)
	}
	return false
}

// handlePacket hands a packet to its group.
func (p *Process) handlePacket(g *group, from int, b []byte, isPlaced bool) (isKept bool) {
	h, body, err := parsePacket(b)
	if err == nil {
		isKept, err = g.handle(from, h, body, b, isPlaced)
	}
	if err != nil {
		p.handleWireError(err)
	}
	return isKept
}

// handleWireError fails all groups, since messages are lost. A process that the wire no more
// reaches counts as dead instead: a send may find that before any rank sees the death.
func (p *Process) handleWireError(err error) {
	if lost, ok := errors.AsType[*PeerError](err); ok {
		if !p.saidGoodbye[lost.Rank].Load() && p.deaths.markDead(lost.Rank) {
			p.noticeDeaths()
			p.reportDeaths([]int{lost.Rank})
		}
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	for _, id := range p.sortedGroups() {
		if g := p.groups[id].group; g != nil {
			g.failHere(&transport.Failure{Kind: transport.FailureAborted, By: g.rank, Text: err.Error(), Code: transport.LibraryCode(err), Cause: err})
		}
	}
}

// wireError returns the error by which messages were lost.
func (p *Process) wireError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// isDead reports whether the process of a rank has died.
func (p *Process) isDead(rank int) bool { return p.deaths.isDead[rank].Load() }

// deathOf returns the process id of a rank that has died.
func (p *Process) deathOf(rank int) (pid int, dead bool) {
	return p.deaths.pidOf(rank), p.isDead(rank)
}

// noticeDeaths makes all groups look at a death that was found.
func (p *Process) noticeDeaths() {
	for _, g := range p.allGroups() {
		g.sync.Notice(g.rank)
	}
	p.hasNewDeaths.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.sortedGroups() {
		if e := p.groups[id]; e.isFreed {
			p.dropEntry(id, e)
		}
	}
}
