package p2p

import (
	"context"
	"fmt"
	"math"
	"time"
)

// AnySource as the Peer of a receive matches messages from all ranks.
const AnySource = math.MinInt

// Request describes one send or receive.
type Request struct {
	Ctx     context.Context
	Timeout time.Duration // 0: none; negative: as well, but a receive from AnySource warns as often
	Sending bool
	Peer    int // the other rank; of a receive also AnySource
	Tag     int
	Type    uint32 // of the elements; the engine only compares it
	Data    []byte // to be sent, or to be received into
	// AnyLength: a receive of up to MaxLength bytes, for which the engine allocates Data.
	AnyLength bool
	MaxLength int
	Owner     Owner
}

// Owner is told how a transfer ends.
type Owner interface {
	// Ended is called once, with nil if the transfer succeeded. It runs under the engine's
	// lock: it must not call the engine. Afterwards the engine does not use the Request.
	Ended(cause error)
	// Warn is called when a receive from AnySource has waited for half of its timeout, and ranks have
	// left or wait for this one. It runs under the engine's lock too.
	Warn(departed, waiting []int)
}

// Transfer is a send or a receive in progress. Its owner sets the Request and then calls
// Start or Exchange; after Owner.Ended it may do so again.
type Transfer struct {
	Request
	From   int   // the rank that sent the message; set when a receive succeeds
	Waits  bool  // not complete at once, in a group that was intact; a rank that is lost waited itself
	Others []int // of a receive that timed out, or lost its sender: tags of the messages that have come

	deadline time.Time   // zero: none
	warnAt   time.Time   // likewise
	unwatch  func() bool // ends the watch of Ctx; may be nil
	visible  bool        // the other rank may see part of the message
	sent     int         // bytes
	cause    error       // of a send that has failed and waits until its buffer is withdrawn
	ended    bool
}

// MismatchError tells that the message that matched a receive has another type or length.
type MismatchError struct {
	From int
	Type uint32
	Len  int // bytes
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("rank %d sent %d bytes of type %d", e.From, e.Len, e.Type)
}

// isOver reports whether a transfer has ended; nil counts as ended.
func (t *Transfer) isOver() bool { return t == nil || t.ended }

func (t *Transfer) end(cause error) {
	if t.unwatch != nil {
		t.unwatch()
		t.unwatch = nil
	}
	t.ended = true
	t.Owner.Ended(cause)
}

// matches reports whether a receive accepts messages with this source and tag.
func (t *Transfer) matches(from, tag int) bool {
	return (t.Peer == from || t.Peer == AnySource) && t.Tag == tag
}

// compare returns a *MismatchError if a message that matches has not the type and length
// that the receive expects.
func (t *Transfer) compare(from int, typ uint32, length int) error {
	if typ != t.Type || t.AnyLength && length > t.MaxLength || !t.AnyLength && length != len(t.Data) {
		return &MismatchError{From: from, Type: typ, Len: length}
	}
	return nil
}

// allocate makes the buffer of a receive of any length.
func (t *Transfer) allocate(length int) {
	if t.AnyLength {
		t.Data = make([]byte, length)
	}
}
