package shm

import (
	"errors"

	"github.com/goccl/goccl/internal/interleave"
)

// mapping is memory of a file, from its start. Once it was given back its addresses may hold other
// memory, so nothing maps, unmaps or wakes there any more, whoever notices a fault.
type mapping struct {
	arena
	mu      interleave.RWMutex // guards freed, and the memory where no call uses it
	isFreed bool
}

// unmap gives the memory back, and reports whether it was there until now.
func (m *mapping) unmap() (first bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isFreed {
		return false, nil
	}
	m.isFreed = true
	if m.size > 0 {
		err = m.arena.unmap()
	}
	return true, err
}

// blank replaces the memory by private memory, all zero. It fails after unmap.
func (m *mapping) blank() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isFreed {
		return errors.New("the memory was given back")
	}
	return m.arena.blank()
}
