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

// awaitTime is how long tend waits for packets before it looks whether ranks poll.
const awaitTime = time.Second

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

// tendByAwaiting waits for packets, except while ranks poll: each packet would wake it as well.
func (p *Process) tendByAwaiting(stop chan struct{}) {
	tick := interleave.NewTimer(tendTime)
	defer tick.Stop()
	for !isClosed(stop) || !p.wire.Idle() {
		seen := p.looks.Load()
		p.awaiter.Await(awaitTime)
		for found, isFree := p.look(); (found || !isFree) && !p.closed.Load(); found, isFree = p.look() {
			if !isFree { // and who looks may have passed what has arrived since
				interleave.Sleep(napTime)
			}
		}

		for p.looks.Load() != seen && p.sleepers.Load() == 0 && !isClosed(stop) {
			seen = p.looks.Load()
			tick.Reset(tendTime)
			interleave.FirstOfThree(stop, p.attention, tick.C)
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

// awaiting is how ranks sleep until there are packets for them.
type awaiting struct {
	awaiter   Awaiter           // the wire; nil: it cannot wait
	looks     interleave.Uint64 // how often ranks have polled
	sleepers  interleave.Int64  // ranks that sleep
	attention chan struct{}     // a rank sleeps: tend has to wait for packets
}

// awaitBell sleeps until the bell of a token rings, done is closed, or that time has passed.
// Meanwhile tend waits for packets.
func (p *Process) awaitBell(t *token, done <-chan struct{}, limit time.Duration) {
	p.sleepers.Add(1)
	defer p.sleepers.Add(-1)
	interleave.Step()
	select {
	case p.attention <- struct{}{}:
	default:
	}

	if t.timer == nil {
		t.timer = interleave.NewTimer(limit)
	} else {
		t.timer.Reset(limit)
	}
	interleave.FirstOfThree(t.bell, done, t.timer.C)
	t.timer.Stop()
}
