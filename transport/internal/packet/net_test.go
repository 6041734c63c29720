package packet

import (
	crypto "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
)

// A net connects processes that are parts of one. Packets of a pair arrive in order; otherwise the order is random.
type net struct {
	mu    sync.Mutex
	boxes [][][][]byte    // by receiver, by sender
	cut   map[int]bool    // processes to which nothing can be sent
	sent  [kindCount]int  // packets of each kind
	slow  map[[2]int]bool // pairs whose packets do not arrive yet: sender, receiver
}

func newNet(n int) *net {
	t := &net{boxes: make([][][][]byte, n), slow: make(map[[2]int]bool)}
	for i := range t.boxes {
		t.boxes[i] = make([][][]byte, n)
	}
	return t
}

// netWire is a process's end of a net.
type netWire struct {
	net *net
	me  int
}

func (w *netWire) Rank() int                 { return w.me }
func (w *netWire) Size() int                 { return len(w.net.boxes) }
func (w *netWire) Packet(n, body int) []byte { return make([]byte, n, n+body) }
func (w *netWire) Release([]byte)            {}
func (w *netWire) Settle(int)                {}
func (w *netWire) Idle() bool                { return true }

func (w *netWire) Send(to int, b []byte, body Body) error {
	b = append(append(b, body[0]...), body[1]...)
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	if w.net.cut[to] {
		return &PeerError{to, errors.New("no way")}
	}
	if len(b) > MaxBytes {
		panic(fmt.Sprintf("a packet of %d bytes", len(b)))
	}
	w.net.sent[b[0]]++
	w.net.boxes[to][w.me] = append(w.net.boxes[to][w.me], b)
	return nil
}

func (w *netWire) Poll(r Receiver) (found bool, err error) {
	w.net.mu.Lock()
	var b []byte
	n := w.Size()
	from := rand.N(n)
	for range n {
		from = (from + 1) % n
		if box := w.net.boxes[w.me][from]; len(box) > 0 && !w.net.slow[[2]int{from, w.me}] {
			b = box[0]
			w.net.boxes[w.me][from] = slices.Delete(box, 0, 1)
			break
		}
	}
	w.net.mu.Unlock()
	if b == nil {
		return false, nil
	}
	r.Deliver(from, b, false)
	return true, nil
}

// newProcess returns the process at a wire.
func newProcess(w Wire) *Process { return NewProcess(Config{Name: "net", Wire: w}) }

// processes returns n processes that a net connects, each on a node of its own.
func processes(n int) []*Process {
	t := newNet(n)
	return apart(n, func(rank int) Wire { return &netWire{t, rank} })
}

// processesOn returns processes on nodes with these numbers.
func processesOn(nodes []int) []*Process {
	t := newNet(len(nodes))
	return placed(nodes, func(rank int) Wire { return &netWire{t, rank} })
}

// apart returns n processes with these wires, each on a node of its own.
func apart(n int, wireOf func(rank int) Wire) []*Process {
	nodes := make([]int, n)
	for i := range nodes {
		nodes[i] = i
	}
	return placed(nodes, wireOf)
}

// placed returns processes with these wires, on nodes with these numbers.
func placed(nodes []int, wireOf func(rank int) Wire) []*Process {
	all := make([]*Process, len(nodes))
	for i, node := range nodes {
		all[i] = newProcess(wireOf(i))
		all[i].describe = func() string {
			return fmt.Sprintf("boot pids node%d %d %s %q", node, os.Getpid(), crypto.Text(), fmt.Sprint("host", node))
		}
	}
	return all
}

// quiet reports whether all questions were answered.
func (t *net) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent[kindReply] >= t.sent[kindQuery]
}
