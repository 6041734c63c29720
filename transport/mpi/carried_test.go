//go:build linux && (amd64 || arm64)

package mpi

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	stdnet "net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/packet"
	"github.com/goccl/goccl/transport/transporttest"
	"github.com/stretchr/testify/require"
)

// carriersVariable is how many carriers connect to the socket that this process has as file 3.
const carriersVariable = "TEST_GOCCL_CARRIERS"

// inapplicable are the parts of the suite that find nothing to test in this transport.
var inapplicable = []struct {
	part, why string
	lacks     func(ep transport.Endpoint) bool
}{
	{"Overlap, and memory in View, Withdraw/Inside and Withdraw/Stuck", "ranks do not see each other's memory",
		func(ep transport.Endpoint) bool { return ep.Memory() == nil }},
	{"the waits Region and Enter (Eager)", "memory that ranks share belongs to the level of a node, whose transport is shm",
		func(ep transport.Endpoint) bool { _, has := ep.(transport.Regions); return !has }},
}

// TestTransportCarried is TestTransport with every packet carried by an MPI library. Package test/mpi runs it, with carriers that
// a launcher has started.
func TestTransportCarried(t *testing.T) {
	if os.Getenv(carriersVariable) == "" {
		t.Skip("package test/mpi runs it with carriers of an MPI launcher")
	}
	f := newFleet(t)
	for _, ep := range f.join(t, 2) {
		for _, p := range inapplicable {
			require.True(t, p.lacks(ep), "%s applies now", p.part)
			if ep.Rank() == 0 {
				t.Logf("does not apply: %s: %s", p.part, p.why)
			}
		}
		require.NoError(t, errors.Join(ep.Close(), ep.Free()))
	}
	transporttest.Test(t, f.join)
}

// join connects ranks, each on a node of its own. From 4 ranks on they send lines in rounds.
func (f *fleet) join(t testing.TB, ranks int) []transport.Endpoint {
	net := f.newNet(t, ranks)
	eps, errs := make([]transport.Endpoint, ranks), make([]error, ranks)
	var joining sync.WaitGroup
	for rank := range ranks {
		p := packet.NewProcess(packet.Config{Name: Name, Wire: &carriedWire{net, rank}, Node: rank, DirectRanks: 3})
		joining.Go(func() { eps[rank], errs[rank] = p.JoinWorld(t.Context(), 1) })
	}
	joining.Wait()
	require.NoError(t, errors.Join(errs...))
	return eps
}

// fleet is the carriers. Process i of each group uses carrier i.
type fleet struct {
	carriers []*carrier

	mu   sync.Mutex
	nets map[uint16]*carriedNet // that tests use
	last uint16                 // the number of the newest
	err  error                  // of a carrier
}

// carrier is the test's end of the socket to one.
type carrier struct {
	*stdnet.UnixConn
	mu    sync.Mutex // guards frame
	frame []byte
}

// newFleet waits for the carriers, which the test closes at its end.
func newFleet(t *testing.T) *fleet {
	n, err := strconv.Atoi(os.Getenv(carriersVariable))
	require.NoError(t, err)
	socket, err := stdnet.FileListener(os.NewFile(3, "socket"))
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, socket.(*stdnet.UnixListener).SetDeadline(time.Now().Add(time.Minute)))
	f := &fleet{carriers: make([]*carrier, n), nets: make(map[uint16]*carriedNet)}
	var reading sync.WaitGroup
	t.Cleanup(func() {
		for _, c := range f.carriers {
			if c != nil {
				_ = c.CloseWrite() // then it ends
			}
		}
		reading.Wait()
	})
	for range n {
		conn, err := socket.Accept()
		require.NoError(t, err)
		var rank [4]byte
		_, err = io.ReadFull(conn, rank[:])
		require.NoError(t, err)
		f.carriers[binary.LittleEndian.Uint32(rank[:])] = &carrier{UnixConn: conn.(*stdnet.UnixConn)}
	}
	for i, c := range f.carriers {
		reading.Go(func() { f.receive(i, c) })
	}
	return f
}

// receive takes what a carrier writes, until it or the test ends.
func (f *fleet) receive(to int, c *carrier) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		from, n, err := readHead(in)
		b := make([]byte, n)
		if err == nil {
			_, err = io.ReadFull(in, b)
		}
		if err != nil {
			f.mu.Lock()
			f.err = fmt.Errorf("carrier %d: %w", to, err)
			f.mu.Unlock()
			return
		}
		f.mu.Lock()
		net := f.nets[binary.LittleEndian.Uint16(b[netOffset:])]
		f.mu.Unlock()
		if net != nil {
			binary.LittleEndian.PutUint16(b[netOffset:], 0)
			net.boxes[to].put(from, b)
		}
	}
}

// failed returns the error of a carrier.
func (f *fleet) failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// netOffset is where a packet has the number of its net while it is carried: in the half of the wire's bytes that the carriers' own
// wire does not use.
const netOffset = packet.WireOffset + 2

// newNet returns a new net.
func (f *fleet) newNet(t testing.TB, n int) *carriedNet {
	net := &carriedNet{fleet: f, boxes: make([]box, n)}
	f.mu.Lock()
	f.last++
	net.number = f.last
	f.nets[net.number] = net
	f.mu.Unlock()
	t.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.nets, net.number)
	})
	return net
}

// carriedNet connects processes that are parts of this one, as a net does, by carriers.
type carriedNet struct {
	fleet  *fleet
	number uint16
	boxes  []box // by receiver
}

// box is what has arrived for a process.
type box struct {
	mu  sync.Mutex
	all []letter
}

type letter struct {
	from int
	b    []byte
}

func (x *box) put(from int, b []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all = append(x.all, letter{from, b})
}

func (x *box) take() (first letter, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.all) == 0 {
		return letter{}, false
	}
	first = x.all[0]
	if x.all = x.all[1:]; len(x.all) == 0 {
		x.all = nil
	}
	return first, true
}

// carriedWire is a process's end of a carriedNet.
type carriedWire struct {
	net *carriedNet
	me  int
}

func (w *carriedWire) Rank() int                 { return w.me }
func (w *carriedWire) Size() int                 { return len(w.net.boxes) }
func (w *carriedWire) Packet(n, body int) []byte { return make([]byte, n, n+body) }
func (w *carriedWire) Release([]byte)            {}
func (w *carriedWire) Settle(int)                {}
func (w *carriedWire) Idle() bool                { return true }

func (w *carriedWire) Send(to int, b []byte, body packet.Body) error {
	b = append(append(b, body[0]...), body[1]...)
	binary.LittleEndian.PutUint16(b[netOffset:], w.net.number)
	c := w.net.fleet.carriers[w.me]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frame = appendFrame(c.frame[:0], to, b)
	_, err := c.Write(c.frame)
	return err
}

func (w *carriedWire) Poll(r packet.Receiver) (found bool, err error) {
	if first, ok := w.net.boxes[w.me].take(); ok {
		r.Deliver(first.from, first.b, false)
		return true, nil
	}
	return false, w.net.fleet.failed()
}
