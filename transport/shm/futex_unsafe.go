//go:build linux

package shm

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processes is how ranks that are processes rest: on a futex, each sleeper on a token of
// its own. A token is no token, a token, or the mark of a rank that sleeps or is
// about to; whoever leaves a token where that mark was makes the system call.
type processes struct {
	segment *segment
	tokens  []*atomic.Uint32 // by sleeper

	mu   sync.RWMutex // held for reading where the mapping is touched outside of calls
	gone bool
}

const (
	noToken = iota
	oneToken
	asleep
)

// slice is how long a rank sleeps at most before it looks whether others are dead: one
// that dies between leaving a token and the system call keeps others from waking it (rule
// wakersLive).
var maxSleep = 50 * time.Millisecond

// soon is what a yield takes at most if nobody computes: a rank that was waiting for
// the core does not keep it for longer.
const maxYield = 300 * time.Microsecond

// Wake implements lines.Rest. Rule tokenIsLeft.
func (p *processes) Wake(sleeper int) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.gone {
		return
	}
	// Whoever sleeps on memory that is gone finds that out by itself.
	_ = p.segment.file.guarded(func() {
		if token := p.tokens[sleeper]; token.Swap(oneToken) == asleep {
			futex(token, futexWake, 1, nil)
		}
	})
}

// Sleep implements lines.Rest. Rule kernelCompares.
func (p *processes) Sleep(sleeper int, ctx context.Context) (woken bool) {
	if ctx != nil {
		stop := context.AfterFunc(ctx, func() { p.Wake(sleeper) })
		defer stop()
	}
	token := p.tokens[sleeper]
	if token.CompareAndSwap(noToken, asleep) {
		timeout := unix.NsecToTimespec(maxSleep.Nanoseconds())
		futex(token, futexWait, asleep, &timeout)
	}
	return token.Swap(noToken) == oneToken
}

// Asleep implements groupsync.Processes.
func (p *processes) Asleep(sleeper int) bool { return p.tokens[sleeper].Load() == asleep }

// Yield implements lines.Processes. It is a raw system call: by another one the
// runtime would give this goroutine's place to a new thread, and wake it for that.
func (p *processes) Yield() bool {
	start := time.Now()
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it cannot fail
	return time.Since(start) < maxYield
}

// Dead implements lines.Processes.
func (p *processes) Dead(rank int) (pid int, dead bool) {
	return p.segment.pid(rank), !p.segment.alive(rank)
}

// unmap gives the mapping back, when no call runs any more.
func (p *processes) unmap() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	return p.segment.close()
}

// The operations of the system call, in their form for memory that processes share.
const (
	futexWait = 0
	futexWake = 1
)

// futex waits on a word or wakes who waits for it. That it returns for no reason, too
// early or because the word has changed is all the same to the callers, which look
// again.
func futex(word *atomic.Uint32, op int, value uint32, timeout *unix.Timespec) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), uintptr(op), uintptr(value),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
}
