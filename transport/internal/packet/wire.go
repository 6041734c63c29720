package packet

import "time"

// Wire carries packets between processes, in order between each pair. Its methods may be called
// concurrently, but one goroutine at a time calls Poll.
type Wire interface {
	// Rank and Size are constant.
	Rank() int
	Size() int
	// Packet returns n bytes for Send, which are followed by a body of so many bytes. Both together
	// are no longer than the longest packet.
	Packet(n, body int) []byte
	// Send starts to send a packet: b, which then belongs to the wire, and behind it the body, to
	// which the wire refers until Settle returns or the receiver has the packet. It does not wait. The
	// error is a *PeerError if it concerns that process alone, also when Poll returns it later.
	Send(to int, b []byte, body Body) error
	// Settle makes the wire refer to no body that was sent to a process. It does not wait: the wire
	// copies what has not left.
	Settle(to int)
	// Poll hands packets that have arrived to r, and makes others progress. found reports whether
	// there was a packet.
	Poll(r Receiver) (found bool, err error)
	// Idle reports whether everything that was sent has left this process.
	Idle() bool
	// Release gives a packet back that a receiver keeps.
	Release(b []byte)
}

// Body is the part of a packet that a wire refers to. Both pieces may be empty.
type Body [2][]byte

func (b Body) length() int { return len(b[0]) + len(b[1]) }

// Awaiter is a wire that can wait for packets. It also reports dead processes, as *PeerError.
type Awaiter interface {
	// Await returns when a packet may have arrived, when Wake is or was called, or after that time.
	// One goroutine at a time calls it, also while another one calls Poll.
	Await(limit time.Duration)
	// Wake ends the Await in progress, or the next one.
	Wake()
}

// Receiver takes the packets of a wire.
type Receiver interface {
	// Locate returns where the rest of a packet of n bytes goes, if its memory is known: of the packet
	// the first PlacedBytes bytes have arrived.
	Locate(from int, first []byte, n int) (rest Body, isKnown bool)
	// Deliver takes a packet from a process; without the rest, if that was placed. If it returns true
	// it keeps the packet, until Release. It keeps none of up to ShortBytes bytes.
	Deliver(from int, b []byte, isPlaced bool) (isKept bool)
}

// PeerError is an error of messages to or from one process, which the wire no more reaches.
type PeerError struct {
	Rank int
	Err  error
}

func (e *PeerError) Error() string { return e.Err.Error() }
func (e *PeerError) Unwrap() error { return e.Err }
