//go:build linux && (amd64 || arm64)

package mpi

import (
	"sync"

	"github.com/goccl/goccl/internal/interleave"
)

// sender sends the packets of a group's rank to the other ranks.
type sender struct {
	process   *process
	id        uint64 // of the group
	rank      int
	processOf []int // by rank: the rank of its process

	// sending is held by who sends to all ranks. A reply of this rank to one of them therefore comes
	// after all that it has sent to any.
	sending sync.Mutex
	// saidGoodbye reports that the rank has sent its last packet, by which it left.
	saidGoodbye interleave.Bool
}

// newPacket returns a packet of this rank with room for a body of n bytes.
func (s *sender) newPacket(h head, n int) []byte {
	b := s.process.wire.packet(headBytes + n)
	h.from, h.group = s.rank, s.id
	h.encode(b)
	return b
}

// postPacket sends a packet to a rank, unless this one has left.
func (s *sender) postPacket(to int, b []byte) {
	if s.saidGoodbye.Load() {
		s.process.wire.release(b)
		return
	}
	if err := s.process.wire.send(s.processOf[to], b); err != nil {
		s.process.handleWireError(err)
	}
}

// sendTo sends a packet of that body to a rank.
func (s *sender) sendTo(to int, h head, body []byte) {
	b := s.newPacket(h, len(body))
	copy(b[headBytes:], body)
	s.postPacket(to, b)
}

// sendToAll sends a packet of that body to all other ranks.
func (s *sender) sendToAll(h head, body []byte) {
	for to := range s.processOf {
		if to != s.rank {
			s.sendTo(to, h, body)
		}
	}
}
