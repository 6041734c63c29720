package transporttest

import (
	"sync"

	"github.com/goccl/goccl/transport"
)

// memory implements transport.Records.
type memory [][]byte

func newMemory(ranks int) memory {
	m := make(memory, ranks)
	for i := range m {
		m[i] = make([]byte, 4*4096)
	}
	return m
}

func (m memory) Job() string          { return "job" }
func (m memory) Part(rank int) []byte { return m[rank] }
func (m memory) Vanished(any) error   { return nil }
func (m memory) Free() error          { return nil }

// ownRecords gives each rank memory that the others do not see.
type ownRecords struct{ *naive }

func (ep ownRecords) Records() (transport.Records, error) { return newMemory(ep.Size()), nil }

// lostRecords clears a rank's part when the rank is freed.
func lostRecords() func(ep *naive) transport.Endpoint {
	var groups sync.Map
	return func(ep *naive) transport.Endpoint {
		m, _ := groups.LoadOrStore(ep.naiveGroup, newMemory(ep.Size()))
		return freedRecords{ep, m.(memory)}
	}
}

type freedRecords struct {
	*naive
	memory memory
}

func (ep freedRecords) Records() (transport.Records, error) { return ep.memory, nil }

func (ep freedRecords) Free() error {
	clear(ep.memory.Part(ep.Rank()))
	return ep.naive.Free()
}
