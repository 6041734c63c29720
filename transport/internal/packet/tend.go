package packet

import (
	"time"

	"github.com/goccl/goccl/internal/interleave"
)

// Times between two looks at the wire by a process whose ranks compute.
//
// On one core a look stops a library: with one each millisecond between 2 ranks of MPI, calls of 1
// and 4 MiB took 1.08 and 1.17 times as long as from C, and 1.04 and 1.10 with one each 20 ms.
const (
	tendTime        = time.Millisecond
	idleTendTime    = 5 * time.Millisecond // after idleTicks looks that found nothing
	idleTicks       = 1000
	libraryTendTime = 20 * time.Millisecond // while collectives of a library begin
)

// Times of tend with a wire that can wait.
const (
	awaitTime       = time.Second           // it waits for packets, before it looks whether ranks poll
	longestTendTime = 10 * time.Millisecond // between two looks whether ranks wait for packets themselves
)

// startTending starts the goroutine that replies to other ranks while this process's ranks compute.
// The caller holds mu.
func (p *Process) startTending() {
	stop := make(chan struct{})
	p.stop = stop
	interleave.Go(func() {
		if p.awaiter != nil {
			p.tendByAwaiting(stop)
		} else {
			p.tend(stop)
		}
	})
}

// tend looks at the wire in intervals, and for dead processes.
func (p *Process) tend(stop chan struct{}) {
	every := tendTime
	tick := interleave.NewTimer(every)
	defer tick.Stop()

	calls := p.libraryCalls.Load()
	for idle := 0; ; idle++ {
		if interleave.First(stop, tick.C) == 0 {
			if p.wire.Idle() {
				return
			}
			interleave.Receive(tick.C)
		}
		tick.Reset(every)

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
		if died := p.deaths.findDead(); len(died) > 0 {
			p.noticeDeaths()
			p.reportDeaths(died)
		}
	}
}

// tendByAwaiting waits for packets, except while ranks poll or wait for packets themselves: each
// packet would wake it as well.
func (p *Process) tendByAwaiting(stop chan struct{}) {
	every := tendTime
	tick := interleave.NewTimer(every)
	defer tick.Stop()
	for !isClosed(stop) || !p.wire.Idle() {
		seen := p.looks.Load()
		if !p.isAwaited.Swap(true) {
			p.awaiter.Await(awaitTime)
			p.isAwaited.Store(false)
			p.lookAll()
		}

		for every = tendTime; p.isAwaited.Load() || p.looks.Load() != seen && p.sleepers.Load() == 0; every = min(2*every, longestTendTime) {
			if isClosed(stop) {
				break
			}
			seen = p.looks.Load()
			tick.Reset(every)
			interleave.FirstOfThree(stop, p.attention, tick.C)
		}
	}
}

// lookAll handles packets until there are none, which another goroutine may be doing: who looks may
// have passed what has arrived since.
func (p *Process) lookAll() {
	for found, isFree := p.look(); (found || !isFree) && !p.closed.Load(); found, isFree = p.look() {
		if !isFree {
			interleave.Sleep(napTime)
		}
	}
}

func isClosed(stop chan struct{}) bool {
	interleave.Step()
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// awaiting is how goroutines sleep until there are packets. One of them waits for packets, and
// wakes the others: a rank that sleeps, so that packets need not go by another goroutine, or tend.
type awaiting struct {
	awaiter   Awaiter           // the wire; nil: it cannot wait
	isAwaited interleave.Bool   // a goroutine waits for packets
	looks     interleave.Uint64 // how often ranks have polled
	sleepers  interleave.Int64  // ranks that sleep by their bells
	attention chan struct{}     // a rank sleeps: tend has to wait for packets, unless another rank does
}

// doneTime is how long a rank waits for packets, at most, before it looks whether its context has
// ended.
const doneTime = 5 * time.Millisecond

// awaitToken sleeps until a token is set, a packet may have arrived, done is closed, or that time
// has passed. If another goroutine looks at the wire, which isFree denies, packets that are there
// are its own to handle, and tend's.
func (p *Process) awaitToken(t *token, done <-chan struct{}, limit time.Duration, isFree bool) {
	if !isFree || p.isAwaited.Swap(true) {
		p.awaitBell(t, done, limit)
		return
	}

	if done != nil {
		limit = min(limit, doneTime)
	}
	t.waker.Store(p)
	if !t.isSet.Load() {
		p.awaiter.Await(limit)
	}
	t.waker.Store(nil)
	p.isAwaited.Store(false)
	if p.sleepers.Load() > 0 {
		p.callTend()
	}
}

// awaitBell sleeps until the bell of a token rings, done is closed, or that time has passed.
// Meanwhile another goroutine waits for packets.
func (p *Process) awaitBell(t *token, done <-chan struct{}, limit time.Duration) {
	p.sleepers.Add(1)
	defer p.sleepers.Add(-1)
	p.callTend()
	if t.timer == nil {
		t.timer = interleave.NewTimer(limit)
	} else {
		t.timer.Reset(limit)
	}
	interleave.FirstOfThree(t.bell, done, t.timer.C)
	t.timer.Stop()
}

// callTend makes tend look whether it has to wait for packets.
func (p *Process) callTend() {
	interleave.Step()
	select {
	case p.attention <- struct{}{}:
	default:
	}
}
