package packet

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFindNodes(t *testing.T) {
	a, b := host{"boot", "pids", "1:2", 7, "x", "vm"}, host{"boot", "pids", "1:3", 8, "y", "vm"}
	n := findNodes("net", []host{a, b, a, b, {"other", "pids", "1:2", 7, "z", "a pod"}}, 2)
	require.Equal(t, []int{0, 1, 0, 1, 4}, n.firstOf)
	require.Equal(t, []int{0, 2}, n.here)
	require.Equal(t, []string{"", "", "", "", "a pod"}, n.hosts)
	require.Nil(t, n.placesHere([]int{0, 2}), "no memory")
}

func TestHostIsSaid(t *testing.T) {
	h, err := parseHost(describeHost(0))
	require.NoError(t, err)
	again, err := parseHost(describeHost(0))
	require.NoError(t, err)
	require.True(t, h.sharesMemory(again))
	require.NotEqual(t, h.token, again.token)
	name, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, name, h.name)
	_, err = parseHost("boot pids 1:2")
	require.Error(t, err)
}

// Who dies before its node is connected is named by its rank in the job.
func TestDeathBeforeTheNodeIsConnected(t *testing.T) {
	all := processesOn([]int{0, 1, 1})
	inside, joined, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	all[2].connectNode = func(context.Context, host, int, int) (transport.Endpoint, error) {
		close(inside)
		<-over
		return nil, context.Canceled
	}
	var ranks sync.WaitGroup
	for rank, p := range all {
		ranks.Go(func() {
			ep, err := p.JoinWorld(t.Context(), 1)
			switch rank {
			case 0:
				require.NoError(t, err)
				close(joined) // before another rank leaves
				require.NoError(t, ep.Close())
				require.NoError(t, ep.Free())
			case 1:
				var lost *transport.PeerLostError
				require.ErrorAs(t, err, &lost)
				require.Equal(t, 2, lost.Rank)
				close(over)
			case 2:
				require.Error(t, err)
			}
		})
	}
	<-inside
	<-joined
	all[1].deaths.markDead(2)
	all[1].noticeDeaths()
	ranks.Wait()
}

// Records are those of the job: a group's ranks have other numbers there. A communicator on its endpoint keeps its own.
func TestGroupsHaveNoRecords(t *testing.T) {
	eps := open(t, 3) // of which 1 and 2 are on a node
	members := []int{2, 1, 0}
	var ranks sync.WaitGroup
	for _, ep := range eps {
		ranks.Go(func() {
			made, err := ep.(transport.Groups).Group(t.Context(), 1, members)
			if !assert.NoError(t, err) {
				return
			}
			_, err = made.(transport.Recorder).Records()
			assert.ErrorIs(t, err, errNoRecords)
			assert.NoError(t, errors.Join(made.Close(), made.Free()))
		})
	}
	ranks.Wait()
	for _, ep := range eps {
		r, err := ep.(transport.Recorder).Records()
		require.NoError(t, err)
		require.NotNil(t, r.Part(ep.Rank()))
		require.NoError(t, errors.Join(r.Free(), ep.Close(), ep.Free()))
	}
}

// A launcher removes what killed ranks have left of memory by the name of its job.
func TestMemoryHasTheNameOfTheJob(t *testing.T) {
	first := host{pid: 5, token: "abc"}
	t.Setenv("GOCCL_SHM_NAME", "/run-7")
	require.Equal(t, "run-7-net-5-abc", memoryName("net", first))
	t.Setenv("GOCCL_SHM_NAME", "")
	require.Equal(t, "net-5-abc", memoryName("net", first))
}

// A member that gives up many groups of a call tells the members of each, on its node and on others.
func TestManyGroupsThatARankGivesUp(t *testing.T) {
	eps := joinAll(t, processesOn([]int{0, 0, 0, 0, 1}))
	group := func(ctx context.Context, r, peer int) error {
		_, err := eps[r].(transport.Groups).Group(ctx, 7|uint64(peer)<<transport.GroupCallBits, []int{peer, 0})
		return err
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for peer := 1; peer < len(eps); peer++ {
		require.ErrorIs(t, group(cancelled, 0, peer), context.Canceled)
	}
	for peer := 1; peer < len(eps); peer++ {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var aborted *transport.AbortedError
		require.ErrorAs(t, group(ctx, peer, peer), &aborted, "rank %d", peer)
		require.Equal(t, 1, aborted.By)
		cancel()
	}
	for _, ep := range eps {
		require.NoError(t, errors.Join(ep.Close(), ep.Free()))
	}
}
