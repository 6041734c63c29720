package tcp

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/transport/internal/packet"
)

// The end of a connection wakes those that wait once. Other groups of this process go on.
func TestEndIsReportedOnce(t *testing.T) {
	conns := loopback(t, 3, 1)
	wires := make([]*wire, 3)
	for rank := range wires {
		w, err := newWire(rank, conns[rank], time.Second)
		require.NoError(t, err)
		wires[rank] = w
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, wires[1].close(ended))

	var lost *packet.PeerError
	r := &collector{t: t}
	for lost == nil {
		_, err := wires[0].Poll(r)
		lost, _ = errors.AsType[*packet.PeerError](err)
	}
	require.Equal(t, 1, lost.Rank)
	e := wires[0].waiter.(*epoll)
	for _, s := range e.sockets[1:] {
		s.arm(false)
	}
	n, err := unix.EpollWait(e.fd, e.events, 0)
	require.NoError(t, err)
	require.Zero(t, n, "otherwise each wait returns at once")
	require.NoError(t, errors.Join(wires[0].close(ended), wires[2].close(ended)))
}

// A process that cannot take its connections leaves none open, by which others would wait for it.
func TestNothingStaysOpen(t *testing.T) {
	conns := loopback(t, 3, 2)
	require.NoError(t, conns[0][2][0].Close())
	_, err := newWire(0, conns[0], time.Second)
	require.ErrorContains(t, err, "the connection to rank 2: ")
	_ = conns[0][1][0].Close() // as the caller does
	require.NoError(t, conns[1][0][0].SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = conns[1][0][0].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
