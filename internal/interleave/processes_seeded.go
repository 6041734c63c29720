//go:build interleave

package interleave

import "time"

// IsSeeded reports whether a seed orders the calling goroutine.
func IsSeeded() bool { return isOn() }

// Draw draws a number below n.
func Draw(n int) int { return known().draw(n) }

// Label returns the label of the running goroutine.
//
//go:norace
func Label() string {
	if s := known(); s != nil {
		return s.current.label
	}
	return ""
}

// sleeper is a task that sleeps on a word of memory that processes share.
type sleeper struct {
	key     uint64
	isWoken bool
	limit   *Timer
	next    *sleeper
}

//go:norace
func (p *sleeper) isTrue() bool { return p.isWoken || len(p.limit.c) > 0 }

// FutexWait is the system call by which a process sleeps on a word while that has a value, for d at
// most. key is the same for all mappings of the word. One in a few calls returns early, as if a
// signal had come.
//
//go:norace
func FutexWait(word *Uint32, value uint32, key uint64, d time.Duration) {
	s := known()
	s.step()
	touch(&word.v, true, false)
	if word.v.Load() != value || s.draw(32) == 0 {
		return
	}
	p := &sleeper{key: key, limit: NewTimer(d), next: s.sleepers}
	s.sleepers = p

	s.block(p, "a wake-up")
	p.limit.disarm()
	for at := &s.sleepers; *at != nil; at = &(*at).next {
		if *at == p {
			*at = p.next
			break
		}
	}
}

// FutexWake is the system call that wakes one of the processes that sleep on a word.
//
//go:norace
func FutexWake(key uint64) {
	s := known()
	s.step()
	for p := s.sleepers; p != nil; p = p.next {
		if p.key == key && !p.isWoken {
			p.isWoken = true
			return
		}
	}
}
