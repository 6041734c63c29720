package packet

import (
	"encoding/binary"
	"fmt"

	"github.com/goccl/goccl/transport/internal/groupsync"
)

// A packet is what ranks send each other: a head, and what its kind needs.
//
//	 0  kind    1
//	 1  flag    1
//	 2  from    2   the sender's rank in the group
//	 4  -       4   the wire's
//	 8  group   8
//	16  number  8   of a call, a round, a query
//	24  body
const (
	headBytes = 24
	// WireOffset is where 4 bytes of a packet begin that belong to the wire.
	WireOffset = 4
	// MaxBytes is the length in bytes of the longest packet, unless Config.PieceBytes is longer.
	MaxBytes = headBytes + roundHead + 2*pieceBytes
	// PartBytes is the length in bytes of the longest packet with a part of a message.
	PartBytes = headBytes + partHead + partBytes
	// ShortBytes is the length in bytes of the longest packet that no receiver keeps.
	ShortBytes = 8 << 10
	// PlacedBytes is how many bytes of a packet say where the rest goes.
	PlacedBytes = headBytes + roundHead
	// maxRanks is the number of ranks of the largest group: of more, a reply would be longer than a
	// packet.
	maxRanks = (MaxBytes-headBytes)/8 - groupsync.StateWords
)

// kind is what a packet is for.
type kind uint8

const (
	kindJoined   kind = iota + 1 // a rank has joined: its host and process
	kindLines                    // lines of ranks in calls
	kindWords                    // the words of its state; flag: it has left and may have held up lines
	kindReason                   // why it rejected call number; flag: the first of a run
	kindPropose                  // the failure that it has stored
	kindFailed                   // the group's failure, of rank number
	kindConclude                 // whether it thinks that the group was formed: flag
	kindVerdict                  // whether the group was formed: flag
	kindPart                     // a part of message number; flag: of P2P
	kindTaken                    // it has taken number parts; flag: of P2P
	kindRound                    // its piece and result of round number
	kindQuery                    // query number: the ranks whose lines the sender lacks
	kindReply                    // reply to query number: its words, and how much it has served
	kindDead                     // the process of rank number has died
	kindGoodbye                  // its process sends nothing more
	kindCount
)

// head is a packet's head.
type head struct {
	kind   kind
	flag   bool
	from   int
	group  uint64
	number uint64
}

// encode stores the head to a packet.
func (h head) encode(b []byte) {
	le := binary.LittleEndian
	b[0], b[1] = byte(h.kind), 0
	if h.flag {
		b[1] = 1
	}
	le.PutUint16(b[2:], uint16(h.from))
	le.PutUint32(b[WireOffset:], 0)
	le.PutUint64(b[8:], h.group)
	le.PutUint64(b[16:], h.number)
}

// parsePacket returns the head and the body of a packet.
func parsePacket(b []byte) (h head, body []byte, err error) {
	if len(b) < headBytes || b[0] == 0 || kind(b[0]) >= kindCount || b[1] > 1 {
		return head{}, nil, fmt.Errorf("a packet of %d bytes that begins with %.8x", len(b), b)
	}
	le := binary.LittleEndian
	h = head{kind: kind(b[0]), flag: b[1] == 1, from: int(le.Uint16(b[2:])), group: le.Uint64(b[8:]), number: le.Uint64(b[16:])}
	return h, b[headBytes:], nil
}
