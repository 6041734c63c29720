//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"sync"
	"time"

	"github.com/goccl/goccl/transport/mpi/internal/abi"
)

// tag tells packets apart from other messages of the program.
const tag = 0x6363

const (
	// receives is how many packets the library can deliver ahead of poll.
	receives = 32
	// pollLimit is how many packets a poll delivers at most.
	pollLimit = 16
)

// mpiWire carries packets as messages of MPI.
type mpiWire struct {
	world *abi.World

	// Used by poll alone. The library fills the receives in the order in which they were started, which is that of the
	// ring from next on. Messages of one sender therefore arrive in order.
	receives [receives]transfer
	next     int

	mu    sync.Mutex // guards the fields below
	sends []*transfer
	spare []*transfer // that have ended
	free  [len(packetSizes)][][]byte
}

// transfer is a message on its way.
type transfer struct {
	request abi.Request
	packet  []byte
	to      int // the receiver of a send
}

// packetSizes are the lengths in bytes of buffers for packets.
var packetSizes = [...]int{256, shortPacket, headBytes + partHead + partBytes, packetBytes}

func newWire(w *abi.World) (*mpiWire, error) {
	m := &mpiWire{world: w}
	for i := range m.receives {
		m.receives[i].packet = m.packet(packetBytes)
		if err := m.receive(&m.receives[i]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (w *mpiWire) receive(t *transfer) error {
	return w.world.Irecv(&t.request, t.packet[:packetBytes], abi.AnySource, tag)
}

func (w *mpiWire) rank() int { return w.world.Rank }
func (w *mpiWire) size() int { return w.world.Size }

func (w *mpiWire) packet(n int) []byte {
	class := 0
	for n > packetSizes[class] {
		class++
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	free := &w.free[class]
	if last := len(*free) - 1; last >= 0 {
		b := (*free)[last]
		*free = (*free)[:last]
		return b[:n]
	}
	return make([]byte, n, packetSizes[class])
}

func (w *mpiWire) release(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.give(b)
}

// give takes a packet back. The caller holds mu.
func (w *mpiWire) give(b []byte) {
	for class, size := range packetSizes {
		if cap(b) == size {
			w.free[class] = append(w.free[class], b)
		}
	}
}

func (w *mpiWire) send(to int, b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var t *transfer
	if last := len(w.spare) - 1; last >= 0 {
		t, w.spare = w.spare[last], w.spare[:last]
	} else {
		t = new(transfer)
	}
	t.packet, t.to = b, to
	if err := w.world.Isend(&t.request, b, to, tag); err != nil {
		return &peerError{to, err}
	}
	w.sends = append(w.sends, t)
	return nil
}

func (w *mpiWire) poll(deliver func(from int, b []byte) bool) (some bool, err error) {
	for range pollLimit {
		t := &w.receives[w.next]
		if ended, err := t.request.Test(); !ended || err != nil {
			return some, w.progress(err)
		}
		some = true
		if deliver(t.request.Source, t.packet[:t.request.Bytes]) {
			t.packet = w.packet(packetBytes)
		}
		if err := w.receive(t); err != nil {
			return some, err
		}
		w.next = (w.next + 1) % receives
	}
	return some, w.progress(nil)
}

// progress looks which messages have left. It returns the first error, which is err unless that is nil.
func (w *mpiWire) progress(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.sends[:0]
	for _, t := range w.sends {
		ended, wrong := t.request.Test()
		if !ended {
			rest = append(rest, t)
			continue
		}
		w.give(t.packet)
		t.packet = nil
		w.spare = append(w.spare, t)
		if err == nil && wrong != nil {
			err = &peerError{t.to, wrong}
		}
	}
	clear(w.sends[len(rest):])
	w.sends = rest
	return err
}

func (w *mpiWire) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sends) == 0
}

// close ends all transfers, or abandons those that have not ended when ctx ends: MPI must have none when it is finalized.
func (w *mpiWire) close(ctx context.Context) error {
	var first error
	for i := range w.receives {
		if err := w.receives[i].request.Cancel(); err != nil && first == nil {
			first = err
		}
	}
	for left := 1; left > 0 && ctx.Err() == nil; {
		if left = 0; w.progress(nil) != nil {
			break // it is closed because of that, or too late
		}
		if !w.idle() {
			left++
		}
		for i := range w.receives {
			if ended, _ := w.receives[i].request.Test(); !ended { // what a late packet says concerns nobody
				left++
			}
		}
		time.Sleep(nap)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.sends {
		t.request.Abandon()
	}
	for i := range w.receives {
		w.receives[i].request.Abandon()
	}
	return first
}
