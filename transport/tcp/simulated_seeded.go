//go:build interleave

package tcp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/packet"
)

// Net stands in for the connections of processes that a seed simulates, in memory: packets of a
// pair arrive in order, each after a delay.
type Net struct {
	mu    sync.Mutex // no step is taken while it is held
	ends  []*netEnd  // by rank
	delay time.Duration
}

// netEnd is a process's end of a net. It implements packet.Wire and packet.Awaiter.
type netEnd struct {
	net     *Net
	rank    int
	boxes   [][]letter // by sender
	bell    chan struct{}
	process *process
}

// letter is a packet on its way, or the end of a connection. The body is read when it arrives.
type letter struct {
	packet []byte
	body   packet.Body
	due    time.Time
	end    error
}

// NewNet returns a net for so many processes. Packets are on their way for up to that long.
func NewNet(ranks int, delay time.Duration) *Net {
	n := &Net{ends: make([]*netEnd, ranks), delay: delay}
	for rank := range n.ends {
		n.ends[rank] = &netEnd{net: n, rank: rank, boxes: make([][]letter, ranks), bell: make(chan struct{}, 1)}
	}
	return n
}

// Join joins the rank of a process, which has a node for itself.
func (n *Net) Join(ctx context.Context, rank int) (transport.Endpoint, error) {
	e := n.ends[rank]
	e.process = &process{Process: packet.NewProcess(packet.Config{Name: Name, Wire: e, Node: rank, DirectRanks: 2})}
	return e.process.JoinWorld(ctx, 1)
}

// Leave ends a process's connections in good order.
func (n *Net) Leave(ctx context.Context, rank int) {
	n.ends[rank].process.SayGoodbye(ctx)
	n.ends[rank].process.Shut()
	n.endAll(rank, errProcessEnded)
}

// Bury ends the connections of a process that has been killed. What it has sent arrives.
func (n *Net) Bury(rank int) { n.endAll(rank, errProcessEnded) }

// endAll ends the connections of a process on the other side.
func (n *Net) endAll(rank int, err error) {
	for _, e := range n.ends {
		if e.rank != rank {
			e.put(rank, letter{end: err})
		}
	}
}

// Cut lets nothing pass between two processes, of which each finds the other one silent later.
func (n *Net) Cut(a, b int) {
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		to, from := n.ends[pair[0]], pair[1]
		silence := time.Second + time.Duration(interleave.Draw(1000))*time.Millisecond
		interleave.Step()
		n.mu.Lock()
		arrived := slices.IndexFunc(to.boxes[from], func(l letter) bool { return l.due.After(time.Now()) })
		if arrived >= 0 {
			to.boxes[from] = to.boxes[from][:arrived]
		}
		to.add(from, letter{end: errors.New("its host does not answer"), due: time.Now().Add(silence)}) // no later packet passes
		n.mu.Unlock()
	}
}

// put puts a letter behind those of its sender, unless that connection has ended.
func (e *netEnd) put(from int, l letter) {
	interleave.Step()
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.add(from, l)
}

// add is put for a caller that holds the net's lock.
func (e *netEnd) add(from int, l letter) {
	box := &e.boxes[from]
	if last := len(*box) - 1; last >= 0 {
		if (*box)[last].end != nil {
			return
		}
		l.due = latest(l.due, (*box)[last].due)
	}

	*box = append(*box, l)
	e.ring()
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (e *netEnd) ring() {
	select {
	case e.bell <- struct{}{}:
	default:
	}
}

func (e *netEnd) Rank() int              { return e.rank }
func (e *netEnd) Size() int              { return len(e.boxes) }
func (e *netEnd) Packet(n, _ int) []byte { return make([]byte, n) }
func (e *netEnd) Release([]byte)         {}
func (e *netEnd) Idle() bool             { return true }
func (e *netEnd) Wake()                  { e.ring() }

func (e *netEnd) Send(to int, b []byte, body packet.Body) error {
	l := letter{packet: b, body: body, due: time.Now()}
	if e.net.delay > 0 && interleave.Draw(2) == 0 {
		l.due = l.due.Add(time.Duration(interleave.Draw(int(e.net.delay))))
	}
	e.net.ends[to].put(e.rank, l)
	return nil
}

func (e *netEnd) Settle(to int) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	box := e.net.ends[to].boxes[e.rank]
	for i := range box {
		for j, piece := range box[i].body {
			box[i].body[j] = slices.Clone(piece)
		}
	}
}

// Poll delivers one packet, of a sender that is drawn.
func (e *netEnd) Poll(r packet.Receiver) (found bool, err error) {
	interleave.Step()
	from, l := e.takeDue()
	switch {
	case l.end != nil:
		return false, &packet.PeerError{Rank: from, Err: l.end}
	case l.packet == nil:
		return false, nil
	}

	whole := slices.Concat(l.packet, l.body[0], l.body[1])
	if len(whole) > packet.PlacedBytes && interleave.Draw(2) == 0 {
		first, rest := whole[:packet.PlacedBytes], whole[packet.PlacedBytes:]
		if to, isKnown := r.Locate(from, first, len(whole)); isKnown {
			copy(to[1], rest[copy(to[0], rest):])
			r.Deliver(from, first, true)
			return true, nil
		}
	}
	r.Deliver(from, whole, false)
	return true, nil
}

// takeDue takes a letter that has arrived.
func (e *netEnd) takeDue() (from int, l letter) {
	n := len(e.boxes)
	first := interleave.Draw(n)
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	for i := range n {
		from = (first + i) % n
		if box := &e.boxes[from]; len(*box) > 0 && !(*box)[0].due.After(time.Now()) {
			if l = (*box)[0]; l.end == nil || len(*box) > 1 {
				*box = (*box)[1:]
			} else {
				(*box)[0].due = time.Now().Add(1000 * time.Hour) // it stays the last one
			}
			return from, l
		}
	}
	return 0, letter{}
}

// Await waits for the first letter that is due.
func (e *netEnd) Await(limit time.Duration) {
	e.net.mu.Lock()
	for _, box := range e.boxes {
		if len(box) > 0 {
			limit = min(limit, max(time.Until(box[0].due), 0))
		}
	}
	e.net.mu.Unlock()

	if limit == 0 {
		return
	}
	timer := interleave.NewTimer(limit)
	defer timer.Stop()
	interleave.First(e.bell, timer.C)
}
