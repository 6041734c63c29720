//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/transport"
)

// process is this process among those of the job: it hands the packets that arrive to their groups.
type process struct {
	wire     wire
	pollTime atomic.Int64 // how long a rank that waits polls without pause, in nanoseconds
	deaths   deaths
	gone     []atomic.Bool // by rank: its process sends nothing more
	mute     []atomic.Bool // by rank: its process has not answered, and sent nothing since
	died     atomic.Bool   // a death was found, of which poll has not told the groups' lines
	closed   atomic.Bool   // no goroutine polls any more

	libraryCalls atomic.Uint64 // collectives of the library that ranks have begun

	says    func() string                                                                     // of itself, to the others
	connect func(ctx context.Context, first host, rank, size int) (transport.Endpoint, error) // the processes of a node

	directRanks int // groups of more ranks send lines in rounds

	polling sync.Mutex
	mu      sync.Mutex // guards the fields below
	groups  map[uint64]*entry
	open    int           // endpoints that were not closed
	stop    chan struct{} // ends tend, while endpoints are open
	err     error         // of the wire
}

// entry is a group of the process, or packets for one that it has not made yet. The entry of a freed group stays until all other
// ranks have left it or died, and send nothing more for it.
type entry struct {
	group *group // nil: not made yet, or freed
	freed bool
	early []early
	world []int  // by rank: the rank of its process; nil: not made yet
	left  []bool // by rank: it has left
}

// early is a packet that has arrived before the group was made.
type early struct {
	from int
	b    []byte
}

func newProcess(w wire) *process {
	return &process{
		wire: w, says: sayHost, connect: connectNode, groups: make(map[uint64]*entry), deaths: newDeaths(w.size()),
		gone: make([]atomic.Bool, w.size()), mute: make([]atomic.Bool, w.size()), directRanks: directRanks,
	}
}

// enter makes a group of the process, and handles what has arrived for it. It returns false if there is or was one with
// that id.
func (p *process) enter(g *group) bool {
	p.polling.Lock() // nothing arrives meanwhile
	defer p.polling.Unlock()
	p.mu.Lock()
	e := p.entry(g.id)
	if e.group != nil || e.freed {
		p.mu.Unlock()
		return false
	}
	came := e.early
	e.group, e.early, e.world, e.left = g, nil, g.world, make([]bool, len(g.world))
	e.left[g.rank] = true
	if p.open++; p.open == 1 {
		p.stop = make(chan struct{})
		go p.tend(p.stop)
	}
	p.mu.Unlock()
	for _, was := range came {
		if !p.handle(g, was.from, was.b) {
			p.wire.release(was.b)
		}
	}
	return true
}

// entry returns the entry of a group. The caller holds mu.
func (p *process) entry(id uint64) *entry {
	e := p.groups[id]
	if e == nil {
		e = new(entry)
		p.groups[id] = e
	}
	return e
}

// left notes that an endpoint was closed. No goroutine remains once all are.
func (p *process) left() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open--; p.open == 0 {
		close(p.stop)
	}
}

// forget removes a group.
func (p *process) forget(g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entry(g.id)
	e.group, e.freed = nil, true
	p.clean(g.id, e)
}

// clean removes the entry of a freed group of which no packet can come any more. The caller holds mu.
func (p *process) clean(id uint64, e *entry) {
	for rank, left := range e.left {
		if !left && !p.isDead(e.world[rank]) {
			return
		}
	}
	if e.freed {
		delete(p.groups, id)
	}
}

// hasLeft notes that a rank has sent its last packet for a group.
func (p *process) hasLeft(from int, h head) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.groups[h.group]; e != nil && h.from < len(e.world) && e.world[h.from] == from {
		e.left[h.from] = true
		p.clean(h.group, e)
	}
}

// tendTime is the time between two looks at the wire by a process whose ranks compute, idleTendTime after idleTicks looks that found
// nothing, and libraryTendTime after one since which a collective of the library has begun. On one core a look stops the library: with
// one each millisecond between 2 ranks, calls of 1 and 4 MiB took 1.08 and 1.17 times as long as from C, and 1.04 and 1.10 with one
// each 20 ms.
const (
	tendTime        = time.Millisecond
	idleTendTime    = 5 * time.Millisecond
	idleTicks       = 1000
	libraryTendTime = 20 * time.Millisecond
)

// tend answers other ranks, and looks for dead ones, while this process's ranks compute.
func (p *process) tend(stop chan struct{}) {
	every := tendTime
	tick := time.NewTicker(every)
	defer tick.Stop()
	calls := p.libraryCalls.Load()
	for idle := 0; ; idle++ {
		select {
		case <-stop:
			if p.wire.idle() {
				return
			}
			<-tick.C
		case <-tick.C:
		}
		for p.poll() {
			idle = 0
		}
		next, now := tendTime, p.libraryCalls.Load()
		switch {
		case now != calls:
			next = libraryTendTime
		case idle >= idleTicks:
			next = idleTendTime
		}
		calls = now
		if next != every {
			every = next
			tick.Reset(every)
		}
		if died := p.deaths.look(); len(died) > 0 {
			p.notice()
			p.spread(died)
		}
	}
}

// poll handles packets that have arrived, and reports whether there were any. If another goroutine does that it returns
// false at once.
func (p *process) poll() (some bool) {
	if !p.polling.TryLock() {
		return false
	}
	defer p.polling.Unlock()
	some, err := p.wire.poll(p.deliver)
	if err != nil {
		p.broken(err)
	}
	if p.died.Load() && p.died.Swap(false) {
		p.reroute()
	}
	return some
}

// reroute makes groups of ranks that have died send lines directly.
func (p *process) reroute() {
	for _, g := range p.all() {
		if slices.ContainsFunc(g.world, p.isDead) {
			g.goDirect()
		}
	}
}

// all returns the groups of the process.
func (p *process) all() (all []*group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.groups {
		if e.group != nil {
			all = append(all, e.group)
		}
	}
	return all
}

// within is until for at most that long.
func (p *process) within(limit time.Duration, done func() bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	p.until(ctx, done)
}

// until polls until done returns true or ctx ends.
func (p *process) until(ctx context.Context, done func() bool) {
	for begin := time.Now(); !done() && ctx.Err() == nil; {
		if p.poll() {
			continue
		}
		switch passed := time.Since(begin); {
		case passed > time.Duration(p.pollTime.Load()):
			time.Sleep(nap)
		default:
			runtime.Gosched()
		}
	}
}

// deliver handles a packet.
func (p *process) deliver(from int, b []byte) (keep bool) {
	h, body, err := parse(b)
	if err != nil {
		p.broken(err)
		return false
	}
	if p.mute[from].Load() {
		p.mute[from].Store(false)
	}
	if h.group == 0 {
		p.heard(from, h)
		return false
	}
	p.mu.Lock()
	if p.groups[h.group] == nil && p.isDead(from) { // it was cleaned
		p.mu.Unlock()
		return false
	}
	e := p.entry(h.group)
	if keep = e.group == nil && !e.freed; keep {
		e.early = append(e.early, early{from, b})
	}
	g := e.group
	p.mu.Unlock()
	switch {
	case keep:
		return true
	case g != nil:
		return p.handle(g, from, b)
	case isFarewell(h, body):
		p.hasLeft(from, h)
	}
	return false
}

// handle hands a packet to its group.
func (p *process) handle(g *group, from int, b []byte) (keep bool) {
	h, body, err := parse(b)
	if err == nil {
		keep, err = g.receive(from, h, body, b)
	}
	if err != nil {
		p.broken(err)
	}
	return keep
}

// broken fails all groups, since messages are lost. A process that MPI no more reaches counts as dead instead: a send may find
// that before any rank sees the death.
func (p *process) broken(err error) {
	if lost, ok := errors.AsType[*peerError](err); ok {
		if p.deaths.mark(lost.rank) {
			p.notice()
			p.spread([]int{lost.rank})
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

// lost returns the error by which messages were lost.
func (p *process) lost() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// isDead reports whether the process of a rank has died.
func (p *process) isDead(rank int) bool { return p.deaths.dead[rank].Load() }

// dead returns the process id of a rank that has died.
func (p *process) dead(rank int) (pid int, dead bool) {
	return p.deaths.pid(rank), p.isDead(rank)
}

// notice makes all groups look at a death that was found.
func (p *process) notice() {
	for _, g := range p.all() {
		g.sync.Notice(g.rank)
	}
	p.died.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, e := range p.groups {
		if e.freed {
			p.clean(id, e)
		}
	}
}

// heard handles a packet that belongs to no group: another process has found that one has died, or sends nothing more.
func (p *process) heard(from int, h head) {
	switch {
	case h.kind == kindBye:
		p.gone[from].Store(true)
	case h.kind == kindDead && h.number < uint64(p.wire.size()) && p.deaths.mark(int(h.number)):
		p.notice()
	}
}

// leave tells all other processes that this one sends nothing more, and waits until it has heard that of all of them, or ctx
// ends. Then nothing is on its way to this process.
func (p *process) leave(ctx context.Context) {
	others := p.others()
	p.say(head{kind: kindBye}, others)
	p.until(ctx, func() bool {
		p.spread(p.deaths.look()) // tend no longer does, once all endpoints are closed
		return !slices.ContainsFunc(others, func(rank int) bool { return !p.gone[rank].Load() && !p.isDead(rank) })
	})
}

// spread tells all other processes which ones have died.
func (p *process) spread(died []int) {
	for _, rank := range died {
		p.say(head{kind: kindDead, number: uint64(rank)}, p.others())
	}
}

// others returns the ranks of all other processes that have not died.
func (p *process) others() (ranks []int) {
	for rank := range p.wire.size() {
		if rank != p.wire.rank() && !p.isDead(rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// say sends a packet that belongs to no group to processes.
func (p *process) say(h head, to []int) {
	for _, rank := range to {
		b := p.wire.packet(headBytes)
		h.put(b)
		if err := p.wire.send(rank, b); err != nil {
			p.broken(err)
		}
	}
}
