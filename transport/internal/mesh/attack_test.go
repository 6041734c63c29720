package mesh

import (
	"bytes"
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/handshake"
)

// dialRoot makes the handshake of a rank with rank 0, once that listens.
func dialRoot(t *testing.T, c *Config) (conn net.Conn) {
	t.Helper()
	require.Eventually(t, func() (ok bool) {
		address, err := c.Rendezvous.Find(t.Context())
		if err == nil {
			conn, err = handshake.Dial(t.Context(), address, nil, handshake.Identity{Secret: secret}, handshake.Opening{Purpose: purposeJoin, From: uint32(c.Rank)})
		}
		return err == nil
	}, time.Minute, time.Millisecond)
	return conn
}

// A process that knows the secret and says nothing holds up nobody, and leaves nothing behind.
func TestSilentMember(t *testing.T) {
	before := runtime.NumGoroutine()
	all := configs(t, 3)
	results := make(chan []result, 1)
	go func() { results <- connectAll(bounded(t), []*Config{all[0], all[1], nil}, nil) }()
	silent := []net.Conn{dialRoot(t, all[2]), dialRoot(t, all[1])}
	m, err := Connect(bounded(t), all[2])
	meshes := <-results
	meshes[2] = result{m, 2, err}
	exchange(t, meshes)
	for _, conn := range silent {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, conn) // until rank 0 ends it
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, time.Minute, time.Millisecond) // that of Eventually
}

// fedConn is a connection from which bytes come, and then its end. The other side reads until this one is closed.
type fedConn struct {
	net.Conn
	from *bytes.Reader
}

func (c fedConn) Read(b []byte) (int, error) { return c.from.Read(b) }

func fed(b []byte) net.Conn {
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	return fedConn{here, bytes.NewReader(b)}
}

// frames returns messages as they are sent.
func frames(messages ...*message) []byte {
	here, there := net.Pipe()
	go func() {
		for _, m := range messages {
			_ = send(here, m)
		}
		_ = here.Close()
	}()
	b, _ := io.ReadAll(there)
	return b
}

// joinWith is the rest of Connect of a rank of two, once the other has sent bytes that are its last.
func joinWith(t testing.TB, rank int, b []byte) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	j := &joining{Config: &Config{Rank: rank, Size: 2, Job: "job", IsLoopback: true}, begin: time.Now(), root: "127.0.0.1:1", links: make(chan link, 8)}
	j.leader = newLeader(j)
	j.listener = handshake.Serve(l, handshake.Identity{}, j.accept)
	other := fed(b)
	root := other
	if rank == 0 {
		var served net.Conn
		served, root = net.Pipe()
		j.leader.running.Go(func() { // it may have sent nothing that ends the join
			j.leader.serve(other)
			cancel()
		})
		j.leader.start(served)
	}
	m, err := j.join(ctx, root)
	require.Nil(t, m)
	require.Error(t, err, "it is connected with a rank that has ended")
	_, _ = root.Close(), j.listener.Close()
	j.leader.end()
	return err
}

func twoRanks() *table {
	return &table{Members: []*member{{Host: "a", Size: 2}, {Rank: 1, Size: 2, Host: "a"}}}
}

// A table without a rank is an error of rank 0, and no panic of the others.
func TestTableWithoutRank(t *testing.T) {
	require.ErrorIs(t, joinWith(t, 1, frames(&message{Table: &table{Members: []*member{nil, {}}}})), errOrder)
}

// A rank that is not linked does not believe rank 0 that all are.
func TestReadyTooEarly(t *testing.T) {
	require.ErrorIs(t, joinWith(t, 1, frames(&message{Table: twoRanks()}, &message{Ready: true})), errOrder)
}

// FuzzFollow shows that a rank ends in good order, whatever rank 0 sends.
func FuzzFollow(f *testing.F) {
	for _, b := range [][]byte{
		nil, frames(&message{Ready: true}), frames(&message{Table: twoRanks()}), frames(&message{Table: twoRanks()}, &message{Table: twoRanks()}),
		frames(&message{Table: &table{Members: []*member{nil, nil}}}), frames(&message{Table: twoRanks()}, &message{Ready: true}),
		frames(&message{Failure: aborted(1, "no")}), frames(&message{Failure: aborted(-7, "no")}), frames(&message{Linked: true}),
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { _ = joinWith(t, 1, b) })
}

// FuzzLead shows that rank 0 ends in good order, whatever a rank sends that knows the secret.
func FuzzLead(f *testing.F) {
	one := &member{Rank: 1, Size: 2, Job: "job"}
	for _, b := range [][]byte{
		nil, frames(&message{Member: one}), frames(&message{Member: one}, &message{Linked: true}), frames(&message{Member: one}, &message{Member: one}),
		frames(&message{Member: &member{Rank: -1, Size: 2}}), frames(&message{Member: &member{Rank: 1 << 40, Size: 2, LocalRank: -1 << 60, LocalSize: -1}}),
		frames(&message{Member: one}, &message{Failure: aborted(5, "no")}), frames(&message{Failure: aborted(1, "no")}), frames(&message{Ready: true}),
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { _ = joinWith(t, 0, b) })
}

// A message is bounded before memory is taken for it.
func TestHugeMessage(t *testing.T) {
	b := frames(&message{Member: &member{Host: string(make([]byte, 1000))}})
	b[3] = 0x7f
	_, err := receive(bytes.NewReader(b))
	require.ErrorContains(t, err, "a message of ")
}

// The end of a join ends the connection of a process that has come just before, and says nothing.
func TestSilentMemberAtTheEnd(t *testing.T) {
	for range 20 {
		l := newLeader(&joining{Config: &Config{Size: 2}})
		silent, other := net.Pipe()
		l.start(silent)
		l.end()
		_, err := other.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
}

// A connection that its dialer has given up is no link: the one of the next attempt is, in whatever order they come.
func TestLinkOfTheLastAttempt(t *testing.T) {
	all := configs(t, 2)
	results := make(chan result, 1)
	go func() {
		m, err := Connect(bounded(t), all[0])
		results <- result{m, 0, err}
	}()

	root := dialRoot(t, all[1])
	defer root.Close()
	_, err := receive(root)
	require.NoError(t, err)
	require.NoError(t, send(root, &message{Member: &member{Rank: 1, Size: 2, Job: all[1].Job, Build: all[1].Build}}))
	m, err := receive(root)
	require.NoError(t, err)

	link := func(attempt uint32) net.Conn {
		conn, err := handshake.Dial(t.Context(), root.RemoteAddr().String(), nil, handshake.Identity{Secret: secret},
			handshake.Opening{Purpose: purposeLink, Number: attempt << laneBits, From: 1, Session: m.Table.Session})
		require.NoError(t, err)
		return conn
	}
	require.NoError(t, link(1).Close())
	last := link(3)
	defer last.Close()
	require.NoError(t, link(2).Close()) // it was longer on its way

	require.NoError(t, send(root, &message{Linked: true}))
	m, err = receive(root)
	require.NoError(t, err)
	require.True(t, m.Ready)
	zero := <-results
	require.NoError(t, zero.err)
	defer zero.Close()
	_, err = zero.Conns[1][0].Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(last, make([]byte, 1))
	require.NoError(t, err)
}
