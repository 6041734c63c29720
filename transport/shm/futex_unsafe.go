//go:build linux

package shm

import (
	"context"
	"encoding/binary"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/interleave"
	"golang.org/x/sys/unix"
)

// processes implements groupsync.Processes by futexes. Each sleeper has one word, which holds no
// token, one token, or the mark of a sleeper that sleeps or is about to. A waker that replaces
// the mark by a token makes the system call.
type processes struct {
	segment *segment
	tokens  []*interleave.Uint32 // by sleeper
	cores   []*interleave.Uint64 // by rank; see lostCore
}

const (
	noToken = iota
	oneToken
	asleep
)

// maxSleep is the longest time that a rank sleeps before it checks whether peers are dead. A peer
// that dies between leaving a token and the system call keeps other ranks from waking the sleeper
// (rule wakersLive).
var maxSleep = 50 * time.Millisecond

// maxYield is the time from which on a yield has lost the core. It is below the time slice of a
// process that computes all the time, 0.7 ms at least, and above the time for which one or two
// other ranks compute before they wait as well, up to about 0.3 ms each.
const maxYield = 600 * time.Microsecond

// Wake implements groupsync.Rest. (syncmodel: tokenIsLeft)
func (p *processes) Wake(sleeper int) {
	file := &p.segment.file
	file.mu.RLock()
	defer file.mu.RUnlock()
	if file.isFreed {
		return
	}
	// A sleeper on memory that is gone notices it by itself.
	_ = file.guarded(func() {
		if token := p.tokens[sleeper]; token.Swap(oneToken) == asleep {
			p.wake(sleeper)
		}
	})
}

// Sleep implements groupsync.Rest. (syncmodel: kernelCompares)
func (p *processes) Sleep(sleeper int, ctx context.Context) (woken bool) {
	if ctx != nil {
		stop := interleave.AfterContext(ctx, func() { p.Wake(sleeper) })
		defer stop()
	}
	token := p.tokens[sleeper]
	if token.CompareAndSwap(noToken, asleep) {
		p.sleep(sleeper)
	}
	return token.Swap(noToken) == oneToken
}

func (p *processes) IsAsleep(sleeper int) bool { return p.tokens[sleeper].Load() == asleep }

// Yield implements groupsync.Processes. It makes a raw system call; for any other the Go runtime
// would hand this goroutine's processor to another thread and wake that thread.
func (p *processes) Yield() bool {
	if interleave.IsSeeded() {
		return !interleave.PollEnds()
	}
	start := time.Now()
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it cannot fail
	return time.Since(start) < maxYield
}

func (p *processes) Dead(rank int) (pid int, dead bool) {
	return p.segment.pid(rank), !p.segment.isAlive(rank)
}

// sleep lets this process sleep while a sleeper's token is marked asleep, for maxSleep at most.
func (p *processes) sleep(sleeper int) {
	if interleave.IsSeeded() {
		interleave.FutexWait(p.tokens[sleeper], asleep, p.key(sleeper), maxSleep)
		return
	}
	timeout := unix.NsecToTimespec(maxSleep.Nanoseconds())
	futex(p.tokens[sleeper], futexWait, asleep, &timeout)
}

// wake wakes the process that sleeps on a sleeper's token.
func (p *processes) wake(sleeper int) {
	if interleave.IsSeeded() {
		interleave.FutexWake(p.key(sleeper))
		return
	}
	futex(p.tokens[sleeper], futexWake, 1, nil)
}

// key is the same in all processes for a sleeper's token.
func (p *processes) key(sleeper int) uint64 {
	return binary.NativeEndian.Uint64(p.segment.header.id[:]) + uint64(sleeper)
}

// The operations of the system call, in their variants for memory shared between processes.
const (
	futexWait = 0
	futexWake = 1
)

// futex waits on a word or wakes a waiter. Callers test again after it returns, so its result
// does not matter.
func futex(word *interleave.Uint32, op int, value uint32, timeout *unix.Timespec) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), uintptr(op), uintptr(value),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
}
