package packet

import (
	"github.com/goccl/goccl/internal/interleave"
)

// sender sends the packets of a group's rank to the other ranks.
type sender struct {
	process   *Process
	id        uint64 // of the group
	rank      int
	processOf []int // by rank: the rank of its process

	// sending is held by who sends to all ranks. A reply of this rank to one of them therefore comes
	// after all that it has sent to any.
	sending interleave.Mutex
	// saidGoodbye reports that the rank has sent its last packet, by which it left.
	saidGoodbye interleave.Bool
}

// newPacket returns a packet of this rank: a head and n bytes, before a body of so many.
func (s *sender) newPacket(h head, n, body int) []byte {
	b := s.process.wire.Packet(headBytes+n, body)
	h.from, h.group = s.rank, s.id
	h.encode(b)
	return b
}

// postPacket sends a packet to a rank, unless this one has left.
func (s *sender) postPacket(to int, b []byte, body Body) {
	if s.saidGoodbye.Load() {
		s.process.wire.Release(b)
		return
	}
	if err := s.process.wire.Send(s.processOf[to], b, body); err != nil {
		s.process.handleWireError(err)
	}
}

// sendTo sends a packet of that body to a rank.
func (s *sender) sendTo(to int, h head, body []byte) {
	b := s.newPacket(h, len(body), 0)
	copy(b[headBytes:], body)
	s.postPacket(to, b, Body{})
}

// sendToAll sends a packet of that body to all other ranks.
func (s *sender) sendToAll(h head, body []byte) {
	for to := range s.processOf {
		if to != s.rank {
			s.sendTo(to, h, body)
		}
	}
}

// settle makes the wire refer to no memory that was sent to other ranks.
func (s *sender) settle() {
	for to, process := range s.processOf {
		if to != s.rank {
			s.process.wire.Settle(process)
		}
	}
}
