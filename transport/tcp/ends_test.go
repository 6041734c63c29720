package tcp

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/packet"
)

// end ends the connections of a process as its death does.
func (p *process) end(t *testing.T) {
	p.Shut()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.wire.close(ctx))
}

// A process that dies is lost for all others, and what it sent before is there.
func TestDeath(t *testing.T) {
	const ranks, dead = 3, 1
	for lanes := 1; lanes <= 2; lanes++ {
		conns := loopback(t, ranks, lanes)
		var all []*process
		for rank := range ranks {
			p, err := newProcess(connections{rank: rank, node: rank, conns: conns[rank]})
			require.NoError(t, err)
			all = append(all, p)
		}
		eps := joinAll(t, all)
		put := transport.Message{Bytes: []byte("last words"), Total: 10}
		_, ok, err := eps[dead].P2P().TryPut(0, &put)
		require.NoError(t, err)
		require.True(t, ok)
		all[dead].end(t)

		var waiting sync.WaitGroup
		for _, rank := range []int{0, 2} {
			waiting.Go(func() {
				_, err := eps[rank].Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1})
				lost, isLost := errors.AsType[*transport.PeerLostError](err)
				require.True(t, isLost, "%v", err)
				require.Equal(t, dead, lost.Rank)
			})
		}
		waiting.Wait()
		last, ok, err := eps[0].P2P().TryNext(dead)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "last words", string(last.Bytes))

		for rank := range eps {
			require.NoError(t, errors.Join(eps[rank].Close(), eps[rank].Free()))
		}
		var leaving sync.WaitGroup
		for _, rank := range []int{0, 2} {
			leaving.Go(func() { require.NoError(t, all[rank].leave(t.Context())) })
		}
		leaving.Wait()
	}
}

// A process that leaves waits for others that do not, as one that is stopped, only as long as what it has sent may be on its way.
func TestLeaveBesideOneThatStays(t *testing.T) {
	conns := loopback(t, 2, 1)
	all := make([]*process, 2)
	for rank := range all {
		p, err := newProcess(connections{rank: rank, node: rank, conns: conns[rank], silence: 50 * time.Millisecond})
		require.NoError(t, err)
		all[rank] = p
	}
	eps := joinAll(t, all)
	for rank, p := range all { // one after the other
		require.NoError(t, errors.Join(eps[rank].Close(), eps[rank].Free()))
		require.NoError(t, p.leave(t.Context()))
	}
}

// silent is a connection whose kernel gives the other host up.
type silent struct {
	net.Conn
	isSilent chan struct{}
}

func (s silent) Read([]byte) (int, error) {
	<-s.isSilent
	return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT}
}

// A host that does not answer is found by the connection on which nothing is sent, although the
// other one stands.
func TestSilentHost(t *testing.T) {
	conns := loopback(t, 2, 2)
	s := silent{conns[0][1][1], make(chan struct{})}
	conns[0][1][1] = s
	all := make([]*process, 2)
	for rank := range all {
		p, err := newProcess(connections{rank: rank, node: rank, conns: conns[rank]})
		require.NoError(t, err)
		all[rank] = p
	}
	eps := joinAll(t, all)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		_, err := eps[0].Enter(&transport.Arrival{Ctx: t.Context(), Seq: 1})
		lost, isLost := errors.AsType[*transport.PeerLostError](err)
		require.True(t, isLost, "%v", err)
		require.Equal(t, 1, lost.Rank)
	})
	close(s.isSilent)
	waiting.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // they do not wait for each other
	defer cancel()
	for rank, ep := range eps {
		require.NoError(t, errors.Join(ep.Close(), ep.Free()))
		_ = all[rank].leave(ctx)
	}
}

// A process that reads nothing for long does not end the connection, gets all once it reads, and
// memory that was sent to it may be changed meanwhile.
func TestStoppedReader(t *testing.T) {
	for _, isAny := range []bool{false, true} {
		conns := loopback(t, 2, 1)
		if isAny {
			conns[0][1][0] = wrapped{conns[0][1][0]}
		}
		wires := make([]*wire, 2)
		for rank := range wires {
			w, err := newWire(rank, conns[rank], time.Second)
			require.NoError(t, err)
			wires[rank] = w
		}

		const packets = 200
		memory := make([]byte, 100_000)
		for i := range packets {
			for at := range memory {
				memory[at] = byte(i + at)
			}
			b := wires[0].Packet(24, len(memory))
			clear(b)
			b[8] = byte(i)
			require.NoError(t, wires[0].Send(1, b, packet.Body{memory[:50_000], memory[50_000:]}))
			wires[0].Settle(1)
		}
		require.False(t, wires[0].Idle())
		r := &collector{t: t}
		for r.packets < packets {
			_, err := wires[1].Poll(r)
			require.NoError(t, err)
			_, err = wires[0].Poll(r)
			require.NoError(t, err)
		}
		require.NoError(t, wires[0].close(t.Context()))
		_, err := wires[1].Poll(r)
		for err == nil {
			_, err = wires[1].Poll(r)
		}
		require.ErrorIs(t, err, errProcessEnded)
		require.NoError(t, wires[1].close(t.Context()))
	}
}

// collector checks the packets of TestStoppedReader, every other one in memory of its own.
type collector struct {
	t       *testing.T
	packets int
	rest    packet.Body
}

func (c *collector) Locate(_ int, first []byte, n int) (packet.Body, bool) {
	if c.packets%2 == 0 {
		return packet.Body{}, false
	}
	b := make([]byte, n-len(first))
	c.rest = packet.Body{b[:1000], b[1000:]}
	return c.rest, true
}

func (c *collector) Deliver(_ int, b []byte, isPlaced bool) bool {
	require.Equal(c.t, byte(c.packets), b[8])
	at := b[24:]
	if isPlaced {
		at = append(append(append([]byte{}, at...), c.rest[0]...), c.rest[1]...)
	}
	require.Len(c.t, at, 100_000)
	for i := range at {
		if at[i] != byte(c.packets+i) {
			require.Equal(c.t, byte(c.packets+i), at[i], "byte %d of packet %d", i, c.packets)
		}
	}
	c.packets++
	return false
}
