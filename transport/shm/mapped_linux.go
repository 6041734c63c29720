package shm

import (
	"fmt"
	"sync"

	"github.com/goccl/goccl/transport"
)

// mapped is the endpoint of a rank that is a process. The memory that it maps can vanish,
// if somebody truncates the file; who touches it then gets a fault. Its methods that do
// not belong to calls survive that. Those that do leave it to the caller, since a guard
// would cost each of them as much as all of a call.
type mapped struct {
	*endpoint
	segment     *segment
	gone        sync.Once
	unmadeMu    sync.Mutex // guards what follows, and this rank's slots of unmade
	unmadeCount int        // groups that this rank could not make
}

// Vanished implements transport.Guard.
func (m *mapped) Vanished(v any) error {
	mappings := []*segment{m.segment}
	m.regions.mu.Lock() // the lane's goroutine has faults, too
	defer m.regions.mu.Unlock()
	for _, r := range m.regions.have {
		if r, ok := r.regionMemory.(segmentMemory); ok {
			mappings = append(mappings, r.segment)
		}
	}
	for _, s := range mappings {
		if err := s.file.vanished(v); err != nil {
			return fmt.Errorf("shared memory %s: %w", s.path, err)
		}
	}
	return nil
}

// safely runs f. If memory is gone that f touches, it runs f once more, on memory in
// which this rank is alone and the group has failed for that.
func (m *mapped) safely(f func()) {
	gone := m.segment.file.guarded(f)
	if gone == nil {
		return
	}
	m.gone.Do(func() {
		if m.segment.blank() != nil {
			return // no memory for that either, or m was freed, which its caller must not let happen
		}
		gone = fmt.Errorf("shared memory %s: %w", m.segment.path, gone)
		m.endpoint.Fail(&transport.Failure{Kind: transport.FailureAborted, By: m.Rank(), Text: gone.Error(), Cause: gone})
	})
	_ = m.segment.file.guarded(f)
}

// Fail implements transport.Endpoint.
func (m *mapped) Fail(f *transport.Failure) (first *transport.Failure) {
	m.safely(func() { first = m.endpoint.Fail(f) })
	return first
}

// Conclude implements transport.Endpoint.
func (m *mapped) Conclude(formed bool) (isFormed bool) {
	m.safely(func() { isFormed = m.endpoint.Conclude(formed) })
	return isFormed
}

// Failure implements transport.Endpoint.
func (m *mapped) Failure() (f *transport.Failure) {
	m.safely(func() { f = m.endpoint.Failure() })
	return f
}

// Fingerprint implements transport.Endpoint.
func (m *mapped) Fingerprint(rank int) (p transport.Fingerprint) {
	m.safely(func() { p = m.endpoint.Fingerprint(rank) })
	return p
}

// Refuse implements transport.Endpoint.
func (m *mapped) Refuse(seq uint64, why string) {
	m.safely(func() { m.endpoint.Refuse(seq, why) })
}

// Withdraw implements transport.Endpoint.
func (m *mapped) Withdraw() (ended bool) {
	m.safely(func() { ended = m.endpoint.Withdraw() })
	return ended
}

// Close implements transport.Endpoint.
func (m *mapped) Close() (err error) {
	m.safely(func() { err = m.endpoint.Close() })
	return err
}
