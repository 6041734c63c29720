//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// process is this process among those of the job: it hands the packets that arrive to their groups.
type process struct {
	wire         wire
	pollTime     interleave.Int64 // how long a rank that waits polls without pause, in nanoseconds
	deaths       deaths
	saidGoodbye  []interleave.Bool // by rank: its process sends nothing more
	unresponsive []interleave.Bool // by rank: its process has not replied, and has sent nothing since
	hasNewDeaths interleave.Bool   // a death was found; poll has not switched the lines of groups yet
	closed       interleave.Bool   // no goroutine polls any more

	libraryCalls interleave.Uint64 // collectives of the library that ranks have begun

	describe    func() string                                                                     // describes this process to the others
	connectNode func(ctx context.Context, first host, rank, size int) (transport.Endpoint, error) // connects the processes of a node

	directRanks int // groups of more ranks send lines in rounds

	polling       sync.Mutex
	mu            sync.Mutex // guards the fields below
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

func newProcess(w wire) *process {
	return &process{
		wire: w, describe: describeHost, connectNode: connectNode, groups: make(map[uint64]*entry), deaths: newDeaths(w.size()),
		saidGoodbye: make([]interleave.Bool, w.size()), unresponsive: make([]interleave.Bool, w.size()), directRanks: directRanks,
	}
}

// addGroup makes a group of the process, and handles what has arrived for it. It returns false if
// there is or was one with that id.
func (p *process) addGroup(g *group) bool {
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
		p.stop = make(chan struct{})
		go p.tend(p.stop)
	}
	p.mu.Unlock()

	for _, e := range early {
		if !p.handlePacket(g, e.from, e.packet) {
			p.wire.release(e.packet)
		}
	}
	return true
}

// entryOf returns the entry of a group. The caller holds mu.
func (p *process) entryOf(id uint64) *entry {
	e := p.groups[id]
	if e == nil {
		e = new(entry)
		p.groups[id] = e
	}
	return e
}

// noteClosed notes that an endpoint was closed. No goroutine remains once all are.
func (p *process) noteClosed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.openEndpoints--; p.openEndpoints == 0 {
		close(p.stop)
	}
}

// removeGroup removes a group that was freed.
func (p *process) removeGroup(g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entryOf(g.id)
	e.group, e.isFreed = nil, true
	p.dropEntry(g.id, e)
}

// dropEntry removes the entry of a freed group of which no packet can come any more. The caller
// holds mu.
func (p *process) dropEntry(id uint64, e *entry) {
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
func (p *process) noteGoodbye(from int, h head) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.groups[h.group]; e != nil && h.from < len(e.processOf) && e.processOf[h.from] == from {
		e.hasLeft[h.from] = true
		p.dropEntry(h.group, e)
	}
}

// poll handles packets that have arrived, and reports whether there were any. If another goroutine
// does that it returns false at once.
func (p *process) poll() (found bool) {
	if !p.polling.TryLock() {
		return false
	}
	defer p.polling.Unlock()
	found, err := p.wire.poll(p.deliverPacket)
	if err != nil {
		p.handleWireError(err)
	}
	if p.hasNewDeaths.Load() && p.hasNewDeaths.Swap(false) {
		p.rerouteLines()
	}
	return found
}

// rerouteLines makes groups of ranks that have died send lines directly.
func (p *process) rerouteLines() {
	for _, g := range p.allGroups() {
		if slices.ContainsFunc(g.processOf, p.isDead) {
			g.lines.switchToDirect()
		}
	}
}

// allGroups returns the groups of the process.
func (p *process) allGroups() (all []*group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.groups {
		if e.group != nil {
			all = append(all, e.group)
		}
	}
	return all
}

// waitAtMost is waitUntil for at most that long.
func (p *process) waitAtMost(limit time.Duration, done func() bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	p.waitUntil(ctx, done)
}

// waitUntil polls until done returns true or ctx ends.
func (p *process) waitUntil(ctx context.Context, done func() bool) {
	for begin := time.Now(); !done() && ctx.Err() == nil; {
		if p.poll() {
			continue
		}
		switch passed := time.Since(begin); {
		case passed > time.Duration(p.pollTime.Load()):
			time.Sleep(napTime)
		default:
			runtime.Gosched()
		}
	}
}

// deliverPacket handles a packet from a process. isKept reports that its memory is still in use.
func (p *process) deliverPacket(from int, b []byte) (isKept bool) {
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
	if isKept = e.group == nil && !e.isFreed; isKept {
		e.early = append(e.early, earlyPacket{from, b})
	}
	g := e.group
	p.mu.Unlock()

	switch {
	case isKept:
		return true
	case g != nil:
		return p.handlePacket(g, from, b)
	case isGoodbye(h, body):
		p.noteGoodbye(from, h)
	}
	return false
}

// handlePacket hands a packet to its group.
func (p *process) handlePacket(g *group, from int, b []byte) (isKept bool) {
	h, body, err := parsePacket(b)
	if err == nil {
		isKept, err = g.handle(from, h, body, b)
	}
	if err != nil {
		p.handleWireError(err)
	}
	return isKept
}

// handleWireError fails all groups, since messages are lost. A process that MPI no more reaches
// counts as dead instead: a send may find that before any rank sees the death.
func (p *process) handleWireError(err error) {
	if lost, ok := errors.AsType[*peerError](err); ok {
		if p.deaths.markDead(lost.rank) {
			p.noticeDeaths()
			p.reportDeaths([]int{lost.rank})
		}
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	for _, e := range p.groups {
		if g := e.group; g != nil {
			g.failHere(&transport.Failure{Kind: transport.FailureAborted, By: g.rank, Text: err.Error(), Code: transport.LibraryCode(err), Cause: err})
		}
	}
}

// wireError returns the error by which messages were lost.
func (p *process) wireError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// isDead reports whether the process of a rank has died.
func (p *process) isDead(rank int) bool { return p.deaths.isDead[rank].Load() }

// deathOf returns the process id of a rank that has died.
func (p *process) deathOf(rank int) (pid int, dead bool) {
	return p.deaths.pidOf(rank), p.isDead(rank)
}

// noticeDeaths makes all groups look at a death that was found.
func (p *process) noticeDeaths() {
	for _, g := range p.allGroups() {
		g.sync.Notice(g.rank)
	}
	p.hasNewDeaths.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, e := range p.groups {
		if e.isFreed {
			p.dropEntry(id, e)
		}
	}
}
