//go:build linux

package shm

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/interleave"
	"golang.org/x/sys/unix"
)

// Two ranks that poll on one core take turns by time slices, of about a millisecond or more, even
// if another core is idle: the system balances its cores less often. Both then lose their core
// within that time.
const shareTime = 20 * time.Millisecond

// A lostCore is a core that a rank lost while it polled, and the time, in milliseconds since the
// machine started: 1 + the core's number in the lowest 16 bits, the time above. 0: none.
type lostCore uint64

func (p *processes) LostCore(rank int) {
	if interleave.IsSeeded() {
		return
	}

	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lost := currentCore()
	p.cores[rank].Store(uint64(lost))
	for other, word := range p.cores {
		if other != rank && lost.sharedWith(lostCore(word.Load())) && leaveCore(lost.number()) {
			p.cores[rank].Store(0)
			return
		}
	}
}

// sharedWith reports whether two ranks may have lost the core to each other.
func (l lostCore) sharedWith(other lostCore) bool {
	between := time.Duration(l>>16) - time.Duration(other>>16)
	return l != 0 && l&0xffff == other&0xffff && max(between, -between)*time.Millisecond <= shareTime
}

func (l lostCore) number() int { return int(l&0xffff) - 1 }

// currentCore returns the core that this thread runs on, and the time, or 0 if the system does not
// tell.
func currentCore() lostCore {
	var core uint32
	var now unix.Timespec
	if _, _, e := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&core)), 0, 0); e != 0 || core >= 0xffff {
		return 0
	}
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return lostCore(time.Duration(now.Nano())/time.Millisecond)<<16 | lostCore(core+1)
}

// leaveCore moves this thread, which is locked to its goroutine, to another of the cores that it
// may use, and reports whether there is one. The thread may use the same cores as before
// afterwards.
func leaveCore(core int) bool {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return false
	}
	others := allowed
	others.Clear(core)
	if others.Count() == 0 || unix.SchedSetaffinity(0, &others) != nil {
		return false
	}
	_ = unix.SchedSetaffinity(0, &allowed) // if cores were taken from the job meanwhile, it has fewer
	return true
}
