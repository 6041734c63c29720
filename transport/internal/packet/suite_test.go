package packet

import (
	"sync"
	"testing"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/transporttest"
	"github.com/stretchr/testify/require"
)

// open connects ranks by a net. Rank 0 has a node for itself; of the others two are on a node.
func open(t testing.TB, ranks int) []transport.Endpoint {
	nodes := make([]int, ranks)
	for i := range nodes {
		nodes[i] = (i + 1) / 2
	}
	return joinAll(t, processesOn(nodes))
}

// joinAll joins the ranks of processes.
func joinAll(t testing.TB, all []*Process) []transport.Endpoint {
	eps := make([]transport.Endpoint, len(all))
	errs := make([]error, len(all))
	var joining sync.WaitGroup
	for i, p := range all {
		joining.Go(func() { eps[i], errs[i] = p.JoinWorld(t.Context(), 1) })
	}
	joining.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return eps
}

// TestTransport sends lines directly between 2 and 3 ranks, and in rounds between 4, 5, 7 and 8.
func TestTransport(t *testing.T) {
	transporttest.Test(t, func(t testing.TB, ranks int) []transport.Endpoint { return joinAll(t, inRounds(processes(ranks), 4)) })
}

// inRounds makes processes send lines in rounds in groups of that many ranks and of more.
func inRounds(all []*Process, ranks int) []*Process {
	for _, p := range all {
		p.directRanks = ranks - 1
	}
	return all
}

// A rank to which MPI no more sends counts as dead, also for those that send it nothing.
func TestUnreachable(t *testing.T) {
	eps := open(t, 3)
	wire := eps[0].(*Endpoint).group.process.wire.(*netWire)
	wire.net.mu.Lock()
	wire.net.cut = map[int]bool{1: true}
	wire.net.mu.Unlock()
	first, other := eps[0].(*Endpoint).group.process, eps[2].(*Endpoint).group.process
	first.sendToProcesses(head{kind: kindGoodbye}, []int{1})
	require.True(t, first.isDead(1))
	other.waitUntil(t.Context(), func() bool { return other.isDead(1) })
	for _, ep := range eps {
		require.NoError(t, ep.Close())
	}
}
