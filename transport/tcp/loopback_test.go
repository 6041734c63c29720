package tcp

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/transporttest"
)

// loopback returns the connections of n processes, by process and by rank.
func loopback(t testing.TB, n, lanes int) [][][]net.Conn {
	all := make([][][]net.Conn, n)
	for i := range all {
		all[i] = make([][]net.Conn, n)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	for i := range n {
		for j := range i {
			for range lanes {
				a, err := net.Dial("tcp", l.Addr().String())
				require.NoError(t, err)
				b, err := l.Accept()
				require.NoError(t, err)
				all[i][j], all[j][i] = append(all[i][j], a), append(all[j][i], b)
			}
		}
	}
	return all
}

// wrapped is a connection that is not the operating system's.
type wrapped struct{ net.Conn }

// processes returns processes that connections join, with pieces of that length. The test ends them.
func processes(t testing.TB, nodes []int, conns [][][]net.Conn, pieceBytes int) []*process {
	all := make([]*process, len(nodes))
	for rank := range all {
		p, err := newProcess(connections{rank: rank, node: nodes[rank], conns: conns[rank], pieceBytes: pieceBytes})
		require.NoError(t, err)
		all[rank] = p
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		var leaving sync.WaitGroup
		for _, p := range all {
			leaving.Go(func() { require.NoError(t, p.leave(ctx)) })
		}
		leaving.Wait()
		require.NoError(t, ctx.Err())
	})
	return all
}

// joinAll joins the ranks of processes.
func joinAll(t testing.TB, all []*process) []transport.Endpoint {
	eps, errs := make([]transport.Endpoint, len(all)), make([]error, len(all))
	var joining sync.WaitGroup
	for rank, p := range all {
		joining.Go(func() { eps[rank], errs[rank] = p.JoinWorld(t.Context(), 1) })
	}
	joining.Wait()
	require.NoError(t, errors.Join(errs...))
	return eps
}

// apart are the nodes of n ranks, each on one of its own.
func apart(n int) (nodes []int) {
	for rank := range n {
		nodes = append(nodes, rank)
	}
	return nodes
}

// suitePieceBytes is the length of pieces in the suite, which looks at each byte several times.
const suitePieceBytes = 128 << 10

func TestTransport(t *testing.T) {
	transporttest.Test(t, func(t testing.TB, ranks int) []transport.Endpoint {
		return joinAll(t, processes(t, apart(ranks), loopback(t, ranks, 1), suitePieceBytes))
	})
}

// Connections of any kind have goroutines, which end with the process and not with its groups.
func TestTransportOverAnyConnection(t *testing.T) {
	open := func(t testing.TB, ranks int) []transport.Endpoint {
		conns := loopback(t, ranks, 1)
		for _, ofProcess := range conns {
			for _, lanes := range ofProcess {
				for i := range lanes {
					lanes[i] = wrapped{lanes[i]}
				}
			}
		}
		return joinAll(t, processes(t, apart(ranks), conns, suitePieceBytes))
	}
	transporttest.TestUnder(t, open, func(t *testing.T, check func()) {
		if strings.Contains(t.Name(), "/Leaks/") {
			t.Skip("it counts goroutines")
		}
		check()
	})
}
