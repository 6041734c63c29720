//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"github.com/goccl/goccl/transport/internal/packet"
	"github.com/goccl/goccl/transport/mpi/internal/abi"
)

// packetTag tells packets apart from other messages of the program.
const packetTag = 0x6363

const (
	// receives is how many packets the library can deliver ahead of poll.
	receives = 32
	// pollLimit is how many packets a poll delivers at most.
	pollLimit = 16
)

// napTime is between two looks at transfers of the library.
const napTime = 50 * time.Microsecond

// mpiWire implements packet.Wire: packets are messages of MPI, in memory of the wire.
type mpiWire struct {
	world *abi.World
	pool  packet.Pool

	// Used by poll alone. The library fills the receives in the order in which they were started. A
	// long message fills one slowly, or never if its sender was stopped; those behind it hold what
	// other ranks have sent, and perhaps what its own sender has sent later. Packets are numbered, by
	// pair.
	receives []*transfer // in the order in which they were started
	probe    int         // index of the one behind the first that is looked at next
	expected []uint16    // by sender: the number of its next packet
	err      error       // of a receive

	ending sync.Mutex // held while a communicator is freed

	mu             sync.Mutex // guards the fields below
	closed         bool       // written with ending held as well
	nextNumber     []uint16   // by receiver: of the next packet
	sends          []*transfer
	spareTransfers []*transfer // transfers that have ended
}

// transfer is a message on its way.
type transfer struct {
	request abi.Request
	packet  []byte
	to      int // the receiver of a send
}

func newWire(w *abi.World) (*mpiWire, error) {
	m := &mpiWire{world: w, expected: make([]uint16, w.Size), nextNumber: make([]uint16, w.Size)}
	for range receives {
		t := &transfer{packet: m.Packet(packet.MaxBytes, 0)}
		if err := m.startReceive(t); err != nil {
			return nil, err
		}
		m.receives = append(m.receives, t)
	}
	return m, nil
}

func (w *mpiWire) startReceive(t *transfer) error {
	return w.world.IrecvAny(&t.request, t.packet[:packet.MaxBytes], packetTag)
}

func (w *mpiWire) Rank() int { return w.world.Rank }
func (w *mpiWire) Size() int { return w.world.Size }

// Packet returns memory that has room for the body too.
func (w *mpiWire) Packet(n, body int) []byte { return w.pool.Take(n + body)[:n] }

func (w *mpiWire) Release(b []byte) { w.pool.Return(b) }

// Settle has nothing to do, because Send copies bodies.
func (w *mpiWire) Settle(int) {}

func (w *mpiWire) Send(to int, b []byte, body packet.Body) error {
	b = append(append(b, body[0]...), body[1]...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil // no rank waits for anything of this process
	}
	var t *transfer
	if last := len(w.spareTransfers) - 1; last >= 0 {
		t, w.spareTransfers = w.spareTransfers[last], w.spareTransfers[:last]
	} else {
		t = new(transfer)
	}

	t.packet, t.to = b, to
	binary.LittleEndian.PutUint16(b[packet.WireOffset:], w.nextNumber[to])
	w.nextNumber[to]++
	if err := w.world.Isend(&t.request, b, to, packetTag); err != nil {
		return &packet.PeerError{Rank: to, Err: err}
	}
	w.sends = append(w.sends, t)
	return nil
}

// Poll looks at the first receive, and at one of those behind it; where it finds a packet it looks
// at the next as well.
func (w *mpiWire) Poll(r packet.Receiver) (found bool, err error) {
	for range pollLimit {
		delivered, err := w.takePacket(0, r)
		if !delivered && err == nil {
			w.probe = w.probe%(receives-1) + 1
			if delivered, err = w.takePacket(w.probe, r); delivered {
				w.probe-- // the next one has moved there
			}
		}
		if !delivered || err != nil {
			return found, w.completeSends(err)
		}
		found = true
	}
	return found, w.completeSends(nil)
}

// takePacket delivers the packet of a receive, if it is there and the next of its sender, and
// starts the receive again.
func (w *mpiWire) takePacket(index int, r packet.Receiver) (delivered bool, err error) {
	if w.err != nil {
		return false, w.err
	}
	t := w.receives[index]
	if ended, err := t.request.Test(); !ended || err != nil {
		w.err = err
		return false, err
	}

	from, b := t.request.Source, t.packet[:t.request.Bytes]
	if len(b) < packet.WireOffset+4 || binary.LittleEndian.Uint16(b[packet.WireOffset:]) != w.expected[from] {
		return false, nil
	}
	w.expected[from]++
	if r.Deliver(from, b, false) {
		t.packet = w.Packet(packet.MaxBytes, 0)
	}
	copy(w.receives[index:], w.receives[index+1:])
	w.receives[receives-1] = t
	w.err = w.startReceive(t)
	return true, w.err
}

// completeSends looks which messages have left. It returns the first error, which is err unless
// that is nil.
func (w *mpiWire) completeSends(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.sends[:0]
	for _, t := range w.sends {
		ended, sendErr := t.request.Test()
		if !ended {
			rest = append(rest, t)
			continue
		}

		w.pool.Return(t.packet)
		t.packet = nil
		w.spareTransfers = append(w.spareTransfers, t)
		if err == nil && sendErr != nil {
			err = &packet.PeerError{Rank: t.to, Err: sendErr}
		}
	}
	clear(w.sends[len(rest):])
	w.sends = rest
	return err
}

// newCommunicator implements library.
func (w *mpiWire) newCommunicator(processes []int, tag int) (*abi.Comm, error) {
	return w.world.Group(processes, tag)
}

// freeCommunicator implements library.
func (w *mpiWire) freeCommunicator(c *abi.Comm) error {
	w.ending.Lock()
	defer w.ending.Unlock()
	if w.closed {
		return nil
	}
	return c.Free()
}

func (w *mpiWire) Idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sends) == 0
}

// close ends all transfers, or abandons those that have not ended when ctx ends: MPI must have none
// when it is finalized.
func (w *mpiWire) close(ctx context.Context) error {
	var first error
	for i := range w.receives {
		if err := w.receives[i].request.Cancel(); err != nil && first == nil {
			first = err
		}
	}
	for pending := 1; pending > 0 && ctx.Err() == nil; {
		if pending = 0; w.completeSends(nil) != nil {
			break // it is closed because of that, or too late
		}
		if !w.Idle() {
			pending++
		}
		for i := range w.receives {
			if ended, _ := w.receives[i].request.Test(); !ended { // no rank needs a late packet
				pending++
			}
		}
		time.Sleep(napTime)
	}

	w.ending.Lock()
	defer w.ending.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.sends {
		t.request.Abandon()
	}
	w.closed, w.sends = true, nil
	for i := range w.receives {
		w.receives[i].request.Abandon()
	}
	return first
}
