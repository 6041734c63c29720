package ccl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport"
)

// soon is the option of a call for which others are late.
var soon = ccl.WithTimeout(100 * time.Millisecond)

// splits makes groups of all ranks of g, one of another, with a label each.
func splits(t *testing.T, g []*ccl.Communicator, labels ...string) (all [][]*ccl.Communicator) {
	t.Helper()
	for _, label := range labels {
		made := make([]*ccl.Communicator, len(g))
		require.NoError(t, errors.Join(each(len(g), func(r int) (err error) {
			made[r], err = g[r].Split(bg, 0, r, ccl.WithLabel(label))
			return err
		})...))
		all = append(all, made)
		g = made
	}
	return all
}

// waiting starts a barrier of rank 1 and returns when that waits in it.
func waiting(t *testing.T, c *ccl.Communicator, observer *ccl.Communicator) (end chan error) {
	t.Helper()
	end = make(chan error, 1)
	go func() { end <- c.Barrier(bg, ccl.WithLabel("elsewhere")) }()
	require.Eventually(t, func() bool {
		last, ok := ccl.LastCallOf(observer, 1)
		return ok && strings.Contains(last.String(), `"elsewhere"`)
	}, patient, time.Millisecond)
	return end
}

// The error of a call says in which calls of other groups the missing rank is, also of groups of groups; a group has
// the label of the call that made it in its name.
func TestCallErrorSaysWhereTheMissingIs(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		made := splits(t, g, "outer", "inner")
		end := waiting(t, made[1][1], g[0])
		_, err := g[0].Split(bg, 0, 0, soon)
		require.True(t, strings.HasSuffix(err.Error(), `waited for rank 1, which did not make call 2 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call); rank 1 last made call 1, split "outer" by the engine, `+
			`and is in call 1, barrier "elsewhere" on group "inner" of ranks 0, 1, made by split, call 1 of the group "outer" of ranks 0, 1, made by split, call 1`), err)
		failed := requireFailed(t, err)
		require.Len(t, failed.Last[0].Others, 1)
		require.Equal(t, made[1][0].Name(), failed.Last[0].Others[0].Group)

		// In the other group's error the first group is the default group, and its call has failed.
		require.ErrorContains(t, made[0][1].Barrier(bg, soon), `; rank 0 last made call 1, split "inner" by the engine, and failed in call 2, split by the engine on the default group`)
		require.NoError(t, made[1][0].Close())
		require.ErrorContains(t, <-end, "peer lost: rank 0 has left the group; rank 0 made no call of this group, "+
			"and failed in call 2, split by the engine on the default group")
	})
}

func requireFailed(t *testing.T, err error) *ccl.CollectiveFailedError {
	t.Helper()
	var failed *ccl.CollectiveFailedError
	require.ErrorAs(t, err, &failed)
	return failed
}

// Closed groups, and calls that have ended, are not where a rank is.
func TestMissingIsInNoCall(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		made := splits(t, g, "closed", "open")
		require.NoError(t, errors.Join(each(2, func(r int) error {
			return errors.Join(made[0][r].Barrier(bg), made[1][r].Barrier(bg), made[0][r].Close())
		})...))
		err := g[0].Barrier(bg, soon)
		require.True(t, strings.HasSuffix(err.Error(), `; rank 1 last made call 1, split "closed" by the engine, and is in no call`), err)

		// One that waits for a message is said to, and not to be idle.
		g = group(t, connect, 2)
		work := ccl.Irecv(bg, g[1], make([]int, 1), 0, 0)
		require.Eventually(t, func() bool { // it is recorded when it moves
			last, _ := ccl.LastCallOf(g[0], 1)
			return !strings.Contains(last.String(), "in no call")
		}, patient, time.Millisecond)
		err = g[0].Barrier(bg, soon)
		require.Regexp(t, "; rank 1 made no call of this group, and (has not ended|failed in) recv of 1 int64 from rank 0, tag 0$", err.Error())
		require.Error(t, work.Wait(bg), "the group has failed")
	})
}

// Where a rank has more groups than others can see, the error does not say that it is in no call.
func TestMissingRankOfManyGroups(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		var made [][]*ccl.Communicator
		for i := range 100 {
			made = append(made, splits(t, g, fmt.Sprint("group ", i))...)
		}
		end := waiting(t, made[5][1], g[0])
		hidden := make(chan error, 1)
		go func() { hidden <- made[99][1].Barrier(bg) }()
		err := g[0].Barrier(bg, soon)
		require.True(t, strings.HasSuffix(err.Error(), `; rank 1 last made call 100, split "group 99" by the engine, and is in call 1, barrier "elsewhere" on group "group 5" of ranks 0, 1, made by split, call 6`), err)
		require.NoError(t, errors.Join(made[5][0].Barrier(bg), made[99][0].Barrier(bg), <-end, <-hidden))
		err = made[7][0].Barrier(bg, soon)
		require.True(t, strings.HasSuffix(err.Error(), "; rank 1 made no call of this group"), err)
		err = made[99][0].Barrier(bg, soon)
		require.True(t, strings.HasSuffix(err.Error(), "which did not make call 2 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call)"), err)
		for _, all := range made {
			require.NoError(t, errors.Join(all[0].Close(), all[1].Close()))
		}
		last, ok := ccl.LastCallOf(g[0], 1)
		require.True(t, ok)
		require.Contains(t, last.String(), `last made call 100, split "group 99" by the engine, and is in no call`)
	})
}

// Labels name a group. Ranks whose labels differ are still in one group, and each is told the name that it gave.
func TestLabelsNameGroups(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		made := make([]*ccl.Communicator, 2)
		require.NoError(t, errors.Join(each(2, func(r int) (err error) {
			made[r], err = g[r].NewGroup(bg, []int{0, 1}, ccl.WithLabel(fmt.Sprint("of ", r)))
			return err
		})...))
		require.Equal(t, `"of 1" of ranks 0, 1, made by new_group, call 1`, made[1].Name())
		require.NoError(t, errors.Join(each(2, func(r int) error { return made[r].Barrier(bg) })...))
		require.ErrorContains(t, made[0].Barrier(bg, soon), "; rank 1 last made call 1, barrier, and is in no call")
		forms := make([][]*ccl.Communicator, 2)
		require.NoError(t, errors.Join(each(2, func(r int) (err error) {
			forms[r], err = g[r].Form(bg, [][]int{{0, 1}, {1, 0}, {1, 0}}, ccl.WithLabel("tensor"))
			return err
		})...))
		for _, list := range []int{1, 2} { // two groups of the same ranks, made by the same call
			require.Equal(t, `"tensor" of ranks 1, 0, made by form, call 2`, forms[0][list].Name())
			require.NoError(t, errors.Join(each(2, func(r int) error { return forms[r][list].Barrier(bg, ccl.WithLabel(fmt.Sprint("list ", list))) })...))
		}
		require.ErrorContains(t, forms[1][2].Barrier(bg, soon), `; rank 1 last made call 1, barrier "list 2", and failed in call 2, barrier on group "of 0"`)
	})
}

// Each factor of PremulSum has a name of its own in the records. More factors than names fit take none from collectives.
func TestManyFactors(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		inner := splits(t, g, "inner")[0]
		require.NoError(t, errors.Join(each(2, func(r int) error {
			x := []float32{1}
			for i := range 100 {
				if err := errors.Join(ccl.AllReduce(bg, g[r], x, x, ccl.PremulSum(float64(2*i))), ccl.AllReduce(bg, inner[r], x, x, ccl.PremulSum(float64(2*i+1)))); err != nil {
					return err
				}
			}
			return errors.Join(ccl.Broadcast(bg, g[r], x, 0), ccl.Scatter(bg, inner[r], make([]int16, 2*(1-r)), make([]int16, 1), 0))
		})...))
		require.ErrorContains(t, g[0].Barrier(bg, soon), "; rank 1 last made call 102, broadcast of 1 float32 by direct, and is in no call")
		require.ErrorContains(t, inner[0].Barrier(bg, soon), "; rank 1 last made call 101, scatter of 2 int16 by direct, and")
	})
}

// late is an endpoint whose rank begins a call and enters it once it may. The ranks see each other's records.
type late struct {
	transport.Endpoint
	records transport.Records
	enter   chan struct{} // nil: at once
}

func (ep *late) Records() (transport.Records, error) { return ep.records, nil }

func (ep *late) Enter(e *transport.Arrival) (transport.Role, error) {
	if ep.enter != nil {
		<-ep.enter
	}
	return ep.Endpoint.Enter(e)
}

// A rank that has begun the call, and is held up before others can see it, is not said to have made it.
func TestMissingHasBegunTheCall(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		eps, err := connect(2)
		require.NoError(t, err)
		records := flight.NewHeap(2)
		g := make([]*ccl.Communicator, 2)
		ends := make([]*late, 2)
		require.NoError(t, errors.Join(each(2, func(r int) (err error) {
			ends[r] = &late{Endpoint: eps[r], records: records}
			g[r], err = ccl.New(bg, ends[r])
			return err
		})...))
		require.NoError(t, errors.Join(each(2, func(r int) error { return g[r].Barrier(bg) })...))
		ends[1].enter = make(chan struct{})
		end := waiting(t, g[1], g[0])
		require.ErrorContains(t, g[0].Barrier(bg, soon), `timed out after 100ms: waited for rank 1, which did not make call 2 (to wait longer, set GOCCL_TIMEOUT, or the timeout of the call); `+
			`rank 1 came to this call, barrier "elsewhere", and did not enter it`)
		require.ErrorContains(t, g[0].Barrier(bg), "and did not enter it", "the next call says the same of the one that failed")
		close(ends[1].enter)
		require.NoError(t, <-end, "rank 0 had come")
		for _, c := range g {
			require.NoError(t, c.Close())
		}
	})
}

// The error of a send to a rank that sends to this one says so, and what to use instead.
func TestTwoSenders(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		x := make([]int64, 1<<17) // too long for a copy on the way
		end := make(chan error, 1)
		go func() { end <- ccl.Send(bg, g[1], x, 0, 3) }()
		require.Eventually(t, func() bool {
			last, ok := ccl.LastCallOf(g[0], 1)
			return ok && strings.HasSuffix(last.String(), " has not ended send of 131072 int64 to rank 0, tag 3")
		}, patient, time.Millisecond)
		err := ccl.Send(bg, g[0], x, 1, 4, soon)
		require.ErrorContains(t, err, "to rank 1, tag 4 (ranks that send to each other use SendRecv, or Isend): timed out after 100ms: ")
		require.Regexp(t, ` (has not ended|failed in) send of 131072 int64 to rank 0, tag 3(, and left the group)?$`, err.Error())
		require.NoError(t, g[0].Close())
		require.Error(t, <-end)
	})
}
