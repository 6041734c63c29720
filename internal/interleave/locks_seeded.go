//go:build interleave

package interleave

import "sync"

// Locker is sync.Locker.
type Locker = sync.Locker

// Mutex is a sync.Mutex whose Lock is a step.
type Mutex struct {
	real   sync.Mutex
	isHeld bool
}

// Lock is sync.Mutex's.
func (m *Mutex) Lock() {
	if s := active(); s != nil {
		s.step()
		for m.isLocked() {
			s.block((*freeMutex)(m), "a lock")
		}
	}
	giveUpAtEnd(m.isLocked())
	m.real.Lock()
	m.setHeld(true)
}

// TryLock is sync.Mutex's.
func (m *Mutex) TryLock() bool {
	step()
	if !m.real.TryLock() {
		return false
	}
	m.setHeld(true)
	return true
}

// Unlock is sync.Mutex's.
func (m *Mutex) Unlock() {
	if !m.isLocked() && isEnding() { // by a goroutine that a standstill has ended
		return
	}
	m.setHeld(false)
	m.real.Unlock()
}

//go:norace
func (m *Mutex) isLocked() bool { return m.isHeld }

//go:norace
func (m *Mutex) setHeld(isHeld bool) { m.isHeld = isHeld }

type freeMutex Mutex

//go:norace
func (m *freeMutex) isTrue() bool { return !m.isHeld }

// RWMutex is a sync.RWMutex whose Lock and RLock are steps.
type RWMutex struct {
	real    sync.RWMutex
	readers int
	isHeld  bool
}

// Lock is sync.RWMutex's.
func (m *RWMutex) Lock() {
	if s := active(); s != nil {
		s.step()
		for !(*unused)(m).isTrue() {
			s.block((*unused)(m), "a lock")
		}
	}
	giveUpAtEnd(!(*unused)(m).isTrue())
	m.real.Lock()
	m.count(0, true)
}

// Unlock is sync.RWMutex's.
func (m *RWMutex) Unlock() {
	if (*unused)(m).isTrue() && isEnding() {
		return
	}
	m.count(0, false)
	m.real.Unlock()
}

// RLock is sync.RWMutex's.
func (m *RWMutex) RLock() {
	if s := active(); s != nil {
		s.step()
		for !(*unwritten)(m).isTrue() {
			s.block((*unwritten)(m), "a lock")
		}
	}
	giveUpAtEnd(!(*unwritten)(m).isTrue())
	m.real.RLock()
	m.count(1, false)
}

// RUnlock is sync.RWMutex's.
func (m *RWMutex) RUnlock() {
	if (*unused)(m).isTrue() && isEnding() {
		return
	}
	m.count(-1, false)
	m.real.RUnlock()
}

// Outside of Run readers are not counted: they run at the same time.
//
//go:norace
func (m *RWMutex) count(readers int, isHeld bool) {
	if running != nil {
		m.readers, m.isHeld = m.readers+readers, isHeld
	}
}

type unused RWMutex

//go:norace
func (m *unused) isTrue() bool { return !m.isHeld && m.readers == 0 }

type unwritten RWMutex

//go:norace
func (m *unwritten) isTrue() bool { return !m.isHeld }

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
	s := active()
	if s == nil {
		giveUpAtEnd(true)
		c.outside().Wait()
		return
	}
	turn := c.join()
	c.L.Unlock()
	s.block(&turn, "a condition")
	c.L.Lock()
}

//go:norace
func (c *Cond) join() waiter {
	c.waiters++
	return waiter{c, c.waiters}
}

// Signal is sync.Cond's. It wakes the waiter that came first.
func (c *Cond) Signal() {
	if active() == nil {
		c.outside().Signal()
		return
	}
	step()
	c.wake(1)
}

// Broadcast is sync.Cond's.
func (c *Cond) Broadcast() {
	if active() == nil {
		c.outside().Broadcast()
		return
	}
	step()
	c.wake(c.waiters)
}

//go:norace
func (c *Cond) wake(n uint64) { c.woken = min(c.woken+n, c.waiters) }

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
	if !o.isDone.Load() {
		defer o.isDone.Store(true)
		f()
	}
}

// WaitGroup is a sync.WaitGroup.
type WaitGroup struct {
	real  sync.WaitGroup
	count int
}

// Add is sync.WaitGroup's.
func (g *WaitGroup) Add(n int) {
	step()
	g.add(n)
	g.real.Add(n)
}

//go:norace
func (g *WaitGroup) add(n int) {
	if running != nil {
		g.count += n
	}
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
	if s := active(); s != nil {
		s.step()
		s.block((*finished)(g), "a group of goroutines")
	}
	giveUpAtEnd(!(*finished)(g).isTrue())
	g.real.Wait()
}

type finished WaitGroup

//go:norace
func (g *finished) isTrue() bool { return g.count <= 0 }
