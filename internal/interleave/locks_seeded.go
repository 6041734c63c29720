//go:build interleave

package interleave

import (
	"sync"
	"sync/atomic"
)

// Locker is sync.Locker.
type Locker = sync.Locker

// outside holds what was locked outside of Run.
var outside = &task{}

// lock is what a task may hold.
type lock interface{ release() }

// take notes that the running task holds a lock, and returns the holder.
//
//go:norace
func take(l lock) *task {
	s := running
	if s == nil {
		return outside
	}
	if r, ok := l.(*reading); ok {
		touch((*RWMutex)(r), true, false)
	} else {
		touch(l, true, true)
	}

	s.held = grow(s.held, s.holds)
	s.held[s.holds] = l
	s.holds++
	return s.current
}

// give notes that a lock is no longer held. It reports false if it was not, and the goroutine is
// being ended.
//
//go:norace
func give(l lock, isHeld bool) bool {
	s := known()
	switch {
	case s == nil:
		return true
	case !isHeld && s.isOver:
		return false
	case !isHeld:
		panic("unlock of an unlocked lock")
	}

	for i := s.holds - 1; i >= 0; i-- {
		if s.held[i] == l {
			s.holds--
			s.held[i], s.held[s.holds] = s.held[s.holds], nil
			break
		}
	}
	return true
}

// Mutex is a sync.Mutex whose Lock is a step.
type Mutex struct {
	real   sync.Mutex
	holder *task
}

// Lock is sync.Mutex's.
func (m *Mutex) Lock() {
	wait((*freeMutex)(m), "a lock")
	m.real.Lock()
	m.take()
}

// TryLock is sync.Mutex's.
func (m *Mutex) TryLock() bool {
	step()
	if !m.real.TryLock() {
		return false
	}
	m.take()
	return true
}

// Unlock is sync.Mutex's.
func (m *Mutex) Unlock() {
	if m.give() {
		m.real.Unlock()
		stepAfter()
	}
}

//go:norace
func (m *Mutex) take() { m.holder = take(m) }

//go:norace
func (m *Mutex) give() bool {
	wasHeld := give(m, m.holder != nil)
	m.holder = nil
	return wasHeld
}

// release releases what a task has held that was ended.
//
//go:norace
func (m *Mutex) release() {
	m.holder = nil
	m.real.Unlock()
}

type freeMutex Mutex

//go:norace
func (m *freeMutex) isTrue() bool { return m.holder == nil }

//go:norace
func (m *freeMutex) heldBy() *task { return m.holder }

// RWMutex is a sync.RWMutex whose Lock and RLock are steps. As in package sync, a reader waits for
// a writer that waits already, and readers that have waited for a writer come before the next one.
type RWMutex struct {
	real    sync.RWMutex
	holder  *task  // the writer
	writers int    // that wait
	readers int    // that hold it, or have been let in
	pending int    // readers that wait
	turn    uint64 // how often it was unlocked
}

// Lock is sync.RWMutex's.
func (m *RWMutex) Lock() {
	step()
	if isOn() && !(*unused)(m).isTrue() {
		m.waitToWrite()
	}
	m.real.Lock()
	m.take()
}

// Unlock is sync.RWMutex's.
func (m *RWMutex) Unlock() {
	if m.give() {
		m.real.Unlock()
		stepAfter()
	}
}

// RLock is sync.RWMutex's.
func (m *RWMutex) RLock() {
	step()
	if r := m.enter(); r != nil {
		m.waitToRead(r)
	}
	m.real.RLock()
	take((*reading)(m))
}

// RUnlock is sync.RWMutex's.
func (m *RWMutex) RUnlock() {
	if m.exit() {
		m.real.RUnlock()
		stepAfter()
	}
}

func (m *RWMutex) waitToWrite() {
	m.queue(1)
	defer m.queue(-1) // also if the goroutine is ended
	wait((*unused)(m), "a lock")
}

//go:norace
func (m *RWMutex) queue(writers int) { m.writers += writers }

func (m *RWMutex) waitToRead(r *reader) {
	isIn := false
	defer func() {
		if !isIn {
			m.giveUp(r)
		}
	}()
	wait(r, "a lock")
	isIn = true
}

// giveUp is for a reader that was ended before it had the lock.
//
//go:norace
func (m *RWMutex) giveUp(r *reader) {
	if r.isTrue() {
		m.readers--
	} else {
		m.pending--
	}
}

//go:norace
func (m *RWMutex) take() { m.holder = take(m) }

//go:norace
func (m *RWMutex) give() bool {
	if !give(m, m.holder != nil) {
		return false
	}
	m.holder = nil
	if running != nil {
		m.readers, m.pending = m.readers+m.pending, 0
		m.turn++
	}
	return true
}

// enter counts a reader. If it has to wait, it returns what for. Outside of Run readers are not
// counted: they run at the same time.
//
//go:norace
func (m *RWMutex) enter() *reader {
	switch {
	case running == nil:
		return nil
	case m.holder == nil && m.writers == 0:
		m.readers++
		return nil
	}
	m.pending++
	return &reader{m, m.turn}
}

//go:norace
func (m *RWMutex) exit() bool {
	if running == nil {
		return true
	}
	if !give((*reading)(m), m.readers > 0) {
		return false
	}
	m.readers--
	return true
}

//go:norace
func (m *RWMutex) release() { *m = RWMutex{} }

type unused RWMutex

//go:norace
func (m *unused) isTrue() bool { return m.holder == nil && m.readers == 0 }

//go:norace
func (m *unused) heldBy() *task { return m.holder }

// reading is an RWMutex that a reader holds.
type reading RWMutex

func (m *reading) release() { (*RWMutex)(m).release() }

// reader is the condition that a reader has been let in.
type reader struct {
	m    *RWMutex
	turn uint64
}

//go:norace
func (r *reader) isTrue() bool { return r.m.turn > r.turn }

//go:norace
func (r *reader) heldBy() *task { return r.m.holder }

// Cond is a sync.Cond. It belongs to one Run, or to none.
type Cond struct {
	L Locker

	once    sync.Once
	real    *sync.Cond
	waiters uint64 // so far
	woken   uint64 // the first so many of them
}

func (c *Cond) outside() *sync.Cond {
	c.once.Do(func() { c.real = sync.NewCond(c.L) })
	return c.real
}

// Wait is sync.Cond's.
func (c *Cond) Wait() {
	if !isOn() {
		c.outside().Wait()
		return
	}
	turn := c.join()
	c.L.Unlock()
	wait(&turn, "a condition")
	acquire(c)
	c.L.Lock()
}

//go:norace
func (c *Cond) join() waiter {
	c.waiters++
	return waiter{c, c.waiters}
}

// Signal is sync.Cond's. It wakes the waiter that came first.
func (c *Cond) Signal() { c.wake(1) }

// Broadcast is sync.Cond's.
func (c *Cond) Broadcast() { c.wake(1 << 62) }

func (c *Cond) wake(n uint64) {
	switch {
	case isOn():
		step()
		release(c)
		c.count(n)
	case n == 1:
		c.outside().Signal()
	default:
		c.outside().Broadcast()
	}
}

//go:norace
func (c *Cond) count(n uint64) { c.woken = min(c.woken+n, c.waiters) }

type waiter struct {
	c      *Cond
	number uint64
}

//go:norace
func (w *waiter) isTrue() bool { return w.c.woken >= w.number }

// Once is a sync.Once.
type Once struct {
	mu     Mutex
	isDone Bool
}

// Do is sync.Once's.
func (o *Once) Do(f func()) {
	if o.isDone.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isDone.v.Load() {
		defer o.end()
		f()
	}
}

// end also follows a panic of f. If Run has ended f, another Run calls it again.
func (o *Once) end() {
	if !isEnding() {
		o.isDone.Store(true)
	}
}

// WaitGroup is a sync.WaitGroup.
type WaitGroup struct {
	real  sync.WaitGroup
	count atomic.Int64
}

// Add is sync.WaitGroup's.
func (g *WaitGroup) Add(n int) {
	step()
	hideFromRaceDetector()
	g.count.Add(int64(n))
	showToRaceDetector()
	g.real.Add(n)
}

// Done is sync.WaitGroup's.
func (g *WaitGroup) Done() { g.Add(-1) }

// Go is sync.WaitGroup's.
func (g *WaitGroup) Go(f func()) {
	g.Add(1)
	Go(func() {
		defer g.Done()
		f()
	})
}

// Wait is sync.WaitGroup's.
func (g *WaitGroup) Wait() {
	wait((*finished)(g), "a group of goroutines")
	g.real.Wait()
}

type finished WaitGroup

func (g *finished) isTrue() bool { return g.count.Load() <= 0 }
