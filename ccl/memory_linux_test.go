//go:build !race

// The race detector does not see that ranks synchronise through a file that each of them maps at another address.

package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

var shmJobs interleave.Int64

// mapped connects goroutines of which each maps the job's memory for itself, as a process does.
func mapped(ranks int) ([]transport.Endpoint, error) {
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	name := fmt.Sprintf("ccl-test-%d-%d", os.Getpid(), shmJobs.Add(1))
	eps := make([]transport.Endpoint, ranks)
	return eps, errors.Join(each(ranks, func(r int) (err error) {
		eps[r], err = shm.Join(ctx, shm.Job{Name: name, Rank: r, Size: ranks})
		return err
	})...)
}

// areas returns the ranges of addresses of this process's mappings, and of those that are files of jobs.
func areas(t *testing.T) (all, files map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	all, files = map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		area, _, _ := strings.Cut(line, " ")
		all[area] = true
		if strings.Contains(line, "/dev/shm/") {
			files[area] = true
		}
	}
	return all, files
}

// requireAllGivenBack fails the test if this process has a mapping of a job, or another one in the place of one of those.
func requireAllGivenBack(t *testing.T, had map[string]bool) {
	t.Helper()
	require.NotEmpty(t, had)
	all, files := areas(t)
	require.Empty(t, files)
	for area := range had {
		require.False(t, all[area], "something was mapped at %s", area)
	}
}

// A message whose communicator is closed between its check and its record leaves nothing mapped where the records were.
func TestCloseBeforeAMessageOfAProcessIsRecorded(t *testing.T) {
	for name, message := range messagesOfAllKinds {
		t.Run(name, func(t *testing.T) {
			eps, err := mapped(2)
			require.NoError(t, err)
			s := &stoppingSelector{Selector: settings(t, 2, patient, nil)}
			all := recorded(t, eps, ccl.WithSelector(s), ccl.WithFlight(t.TempDir()))
			require.NoError(t, all[1].Close())
			_, had := areas(t)
			s.next.Store(new(func() { require.NoError(t, all[0].Close()) }))
			require.ErrorIs(t, message(all[0], 0), ccl.ErrClosed)
			requireAllGivenBack(t, had)
		})
	}
}

// A receive of a process that Close ends writes its flight before the memory is given back.
func TestFlightOfAReceiveOfAProcessThatCloseEnds(t *testing.T) {
	eps, err := mapped(2)
	require.NoError(t, err)
	dir := t.TempDir()
	all := recorded(t, eps, ccl.WithFlight(dir))
	require.NoError(t, all[1].Close())
	_, had := areas(t)
	waits := newGate()
	receive := async(func() error {
		_, err := ccl.Recv(askedContext{bg, waits}, all[0], make([]int32, 4), 0, 7)
		return err
	})
	waits.Waited()
	_ = all[0].Close() // counts no receive, whose caller waits
	require.ErrorIs(t, receive(), ccl.ErrClosed)
	for _, files := areas(t); len(files) > 0; _, files = areas(t) { // Close may wait for the receive's lock in a goroutine
		runtime.Gosched()
	}
	requireAllGivenBack(t, had)
	d := load(t, dir)
	require.Len(t, d, 1)
	require.Len(t, d[0].Ranks, 2)
	require.Equal(t, "message 1, recv of 4 int32 from rank 0, tag 7 (failed)", d[0].Ranks[0].Messages[0].String())
}

// debugging is a Selector with defaults.debug.
type debugging struct{ ccl.Selector }

func (debugging) Debug() bool { return true }

// With debug, a call that the program started is not looked for changes of its buffers where Close has given these back: before it is
// queued, at its turn and at its end.
func TestDebugBesideClose(t *testing.T) {
	for _, when := range []string{"before", "within"} {
		t.Run(when, func(t *testing.T) {
			var closing interleave.Pointer[ccl.Communicator]
			kernel := &ccl.Kernel{Eager: true, AnyRunner: true, Run: func(c *ccl.Call) error {
				if c.Rank() == 0 {
					_ = closing.Load().Close() // the call has not ended
				}
				return rightReduce(c)
			}}
			eps, err := mapped(2)
			require.NoError(t, err)
			all := recorded(t, eps, ccl.WithSelector(debugging{settings(t, 2, patient, map[string]*ccl.Kernel{"closing": kernel})}))
			buffers := make([][]float32, 2)
			require.NoError(t, errors.Join(onAll(all, func(c *ccl.Communicator) (err error) {
				buffers[c.Rank()], err = ccl.Alloc[float32](bg, c, 2)
				return err
			})...))
			closing.Store(all[0])
			if when == "before" {
				require.NoError(t, all[0].Close())
				require.ErrorIs(t, started(func(async ccl.CallOption) error {
					return ccl.AllReduce(bg, all[0], buffers[0][:1], buffers[0][1:], ccl.Sum, async)
				}).Wait(bg), ccl.ErrClosed)
				r := repeat(all[0], buffers[0][:1], buffers[0][1:], ccl.Sum)
				require.ErrorIs(t, r(bg).Wait(bg), ccl.ErrClosed)
				return
			}
			for _, err := range onAll(all, func(c *ccl.Communicator) error {
				b := buffers[c.Rank()]
				return started(func(async ccl.CallOption) error {
					return ccl.AllReduce(bg, c, b[:1], b[1:], ccl.Sum, ccl.WithAlgorithm("closing"), async)
				}).Wait(bg)
			}) {
				require.NoError(t, err)
			}
		})
	}
}

// Memory of Alloc outlives Close and the end of the whole job until whoever has retained it releases it.
func TestRetain(t *testing.T) {
	eps, err := mapped(2)
	require.NoError(t, err)
	all := recorded(t, eps)
	buffers := make([][]float32, 2)
	require.NoError(t, errors.Join(onAll(all, func(c *ccl.Communicator) (err error) {
		buffers[c.Rank()], err = ccl.Alloc[float32](bg, c, 1000)
		return err
	})...))
	_, had := areas(t)
	require.True(t, all[0].Retain())
	require.True(t, all[0].Retain())
	require.NoError(t, errors.Join(all[0].Close(), all[1].Close()))
	all[0].Release()
	for i := range buffers[0] {
		buffers[0][i] = 1
	}
	all[0].Abort(errors.New("too late"))
	require.NoError(t, all[0].Err())
	require.False(t, all[0].Retain(), "it is closed")
	all[0].Release()
	requireAllGivenBack(t, had)
	require.False(t, all[0].Retain())
	require.False(t, new(ccl.Communicator).Retain())
	require.False(t, (*ccl.Communicator)(nil).Retain())
}
