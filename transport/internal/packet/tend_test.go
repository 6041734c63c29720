package packet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/stretchr/testify/require"
)

// watchedWire counts looks at a net.
type watchedWire struct {
	netWire
	looks interleave.Int64
}

func (w *watchedWire) Poll(r Receiver) (bool, error) {
	w.looks.Add(1)
	return w.netWire.Poll(r)
}

// While ranks compute, a process looks at the wire each millisecond, each 5 ms once nothing has come for a second, and each 20 ms as long as they
// begin collectives of the library. The times are those of a clock that stands still while any goroutine runs.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &watchedWire{netWire: netWire{net: newNet(2)}}
		p := newProcess(w)
		ep := &Endpoint{group: &group{sender: sender{process: p}}}
		stop := make(chan struct{})
		go p.tend(stop)
		during := func(ms int, each func()) int64 {
			before := w.looks.Load()
			for range ms {
				each()
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			return w.looks.Load() - before
		}
		nothing := func() {}
		call := ep.NoteLibraryCall
		time.Sleep(time.Millisecond / 2) // so that no look is at the time of a call
		require.EqualValues(t, 100, during(100, nothing))
		during(20, call) // until a look finds the first call
		require.EqualValues(t, 5, during(100, call))
		during(40, nothing) // until a look finds that there were none
		require.EqualValues(t, 100, during(100, nothing))
		during(1000, nothing)
		require.EqualValues(t, 20, during(100, nothing), "nothing has come for long")
		during(5, call)
		require.EqualValues(t, 5, during(100, call), "nothing has come for long, but calls are made")
		during(40, nothing)
		require.EqualValues(t, 20, during(100, nothing))
		b := w.Packet(headBytes, 0)
		head{kind: kindGoodbye}.encode(b)
		require.NoError(t, (&netWire{w.net, 1}).Send(0, b, Body{}))
		during(5, nothing) // until a look finds it
		require.EqualValues(t, 100, during(100, nothing))
		close(stop)
	})
}
