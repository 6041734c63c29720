package shm

import (
	"fmt"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// mapped implements transport.Endpoint and FaultGuard for a rank that is a process. If the file is
// truncated, the memory that it maps vanishes, and the next access faults. Methods outside of calls
// handle that themselves. Methods of calls leave it to the caller, because a guard would cost as
// much as a whole call.
type mapped struct {
	*endpoint
	segment     *segment
	gone        interleave.Once
	unmadeMu    interleave.Mutex // guards unmadeCount, and this rank's slots of unmade
	unmadeCount int              // number of groups that this rank could not make
}

func (m *mapped) Vanished(v any) error {
	mappings := []*segment{m.segment}
	m.regions.mu.Lock() // the goroutine of the P2P may fault as well
	defer m.regions.mu.Unlock()
	for _, r := range m.regions.all {
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

// safely runs f. If f touches memory that is gone, safely replaces it by private memory in which
// the group has failed for that reason, and runs f again.
func (m *mapped) safely(f func()) {
	gone := m.segment.file.guarded(f)
	if gone == nil {
		return
	}
	m.gone.Do(func() {
		if m.segment.file.blank() != nil {
			return // no private memory either, or the caller has freed m, which it must not
		}
		gone = fmt.Errorf("shared memory %s: %w", m.segment.path, gone)
		const found = 1 // not 0, with which a rank gives up: the rank has found this
		m.endpoint.Fail(&transport.Failure{Kind: transport.FailureAborted, By: m.Rank(), Seq: found, Text: gone.Error(), Cause: gone})
	})
	_ = m.segment.file.guarded(f)
}

// safely returns f's result. See mapped.safely.
func safely[T any](m *mapped, f func() T) (result T) {
	m.safely(func() { result = f() })
	return result
}

func (m *mapped) Fail(f *transport.Failure) *transport.Failure {
	return safely(m, func() *transport.Failure { return m.endpoint.Fail(f) })
}

func (m *mapped) Conclude(formed bool) (isFormed bool) {
	return safely(m, func() bool { return m.endpoint.Conclude(formed) })
}

// WaitsFor is that of groupsync.Member.
func (m *mapped) WaitsFor() int { return safely(m, m.endpoint.WaitsFor) }

func (m *mapped) Failure() *transport.Failure { return safely(m, m.endpoint.Failure) }

func (m *mapped) Fingerprint(rank int) transport.Fingerprint {
	return safely(m, func() transport.Fingerprint { return m.endpoint.Fingerprint(rank) })
}

func (m *mapped) Reject(seq uint64, why string) {
	m.safely(func() { m.endpoint.Reject(seq, why) })
}

func (m *mapped) Withdraw() (ended bool) { return safely(m, m.endpoint.Withdraw) }

func (m *mapped) Close() error { return safely(m, m.endpoint.Close) }
