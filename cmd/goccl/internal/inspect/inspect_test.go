package inspect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport/shm"
)

func call(number uint64, collective string, count int, state flight.State) flight.Call {
	return flight.Call{Number: number, Collective: collective, Type: "float32", Count: count, Algorithm: "direct", State: state}
}

// first returns a document with the calls of ranks in the first group.
func first(writer string, calls ...[]flight.Call) *flight.Document {
	d := &flight.Document{Version: flight.Version, Job: "job", Size: len(calls), Writer: writer}
	for rank, c := range calls {
		d.Ranks = append(d.Ranks, flight.Rank{Rank: rank, PID: 100 + rank,
			Groups: []flight.GroupCalls{{ID: "0", Rank: rank, Size: len(calls), Calls: c}}})
	}
	return d
}

func printed(t *testing.T, documents ...*flight.Document) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, Merge(documents).Write(&b))
	return b.String()
}

// The first difference names the calls, and the ranks that had not come.
func TestDifference(t *testing.T) {
	both := []flight.Call{call(4, "barrier", 0, flight.StateDone), call(5, "all_reduce", 8, flight.StateFailed)}
	other := []flight.Call{call(4, "barrier", 0, flight.StateDone), call(5, "all_reduce", 9, flight.StateFailed), call(6, "barrier", 0, flight.StateBegun)}
	late := []flight.Call{call(3, "barrier", 0, flight.StateDone), call(4, "barrier", 0, flight.StateDone)}
	refused := []flight.Call{call(4, "barrier", 0, flight.StateDone), {Number: 5, State: flight.StateRejected}}
	torn := []flight.Call{call(4, "barrier", 0, flight.StateDone), {Number: 5, State: flight.StateStarting}}
	require.Contains(t, printed(t, first("goccl run", both, other, both, late, refused, torn)), `
  the first difference: call 5
    ranks 0, 2: all_reduce of 8 float32 by direct
    rank 1: all_reduce of 9 float32 by direct
    rank 4: rejected
    rank 3: had not come
`)
	require.Contains(t, printed(t, first("goccl run", both, both, torn)), "no difference between these ranks")
	// A rank that has forgotten a call says nothing about it.
	require.Contains(t, printed(t, first("goccl run", both[1:], both)), "no difference between these ranks")
	require.Contains(t, printed(t, first("goccl run", nil, both)), "the first difference: call 4\n    rank 1: barrier of 0 float32 by direct\n    rank 0: had not come\n")
}

// Of one call in several documents the later state is true; a rank that only some have is there.
func TestMerge(t *testing.T) {
	begun := []flight.Call{call(1, "barrier", 0, flight.StateDone), call(2, "barrier", 0, flight.StateBegun)}
	failed := []flight.Call{call(2, "barrier", 0, flight.StateFailed), call(3, "barrier", 0, flight.StateBegun)}
	a, b := first("rank 0", begun, begun), first("rank 1", begun, failed)
	b.Ranks = b.Ranks[1:]
	b.Ranks[0].Groups[0].Left = true
	b.Ranks[0].Messages = []flight.Message{{Number: 1, Kind: "send", Peer: 0, Tag: 3, Type: "int8", Count: 2, State: flight.StateBegun, Group: "0"}}
	old := first("rank 7", begun)
	old.Job, a.Written = "older", time.Unix(5, 0)
	for _, documents := range [][]*flight.Document{{old, a, b}, {b, a, old}} {
		j := Merge(documents)
		require.Equal(t, []string{"older"}, j.Others)
		require.Equal(t, "job", j.Name)
		require.Equal(t, begun, j.Ranks[0].Groups[0].Calls)
		require.Equal(t, append(begun[:1:1], failed...), j.Ranks[1].Groups[0].Calls)
	}
	require.Equal(t, `job job, 2 ranks; records from rank 0, rank 1

all ranks
  rank 0: call 2, barrier of 0 float32 by direct (begun)
  rank 1: call 3, barrier of 0 float32 by direct (begun); it has left the group
  the first difference: call 3
    rank 1: barrier of 0 float32 by direct
    rank 0: had not come

messages
  rank 1: message 1, send of 2 int8 to rank 0, tag 3 (begun)

another job has records there, and is not shown: older
`, printed(t, old, a, b))
}

// A group of some ranks has a paragraph of its own, with ranks of the job.
func TestGroups(t *testing.T) {
	d := first("goccl run", nil, nil, nil)
	for i, rank := range []int{2, 0} {
		d.Ranks[rank].Groups = append(d.Ranks[rank].Groups, flight.GroupCalls{ID: "1", Name: "of ranks 2, 0", Rank: i, Size: 3,
			Calls: []flight.Call{call(uint64(1+i), "barrier", 0, flight.StateBegun)}})
	}
	require.Contains(t, printed(t, d), `
group of ranks 2, 0
  rank 2 (0 in the group): call 1, barrier of 0 float32 by direct (begun)
  rank 0 (1 in the group): call 2, barrier of 0 float32 by direct (begun)
  1 of 3 have no records
  the first difference: call 2
    rank 0: barrier of 0 float32 by direct
    rank 2: had not come
`)
}

// One file that is empty, torn or not a file hides no other.
func TestUnreadFiles(t *testing.T) {
	dir := t.TempDir()
	d := first("rank 1", []flight.Call{call(1, "barrier", 0, flight.StateFailed)})
	require.NoError(t, d.Write(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "flight-a.json"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "flight-z.json"), []byte(`{"version": 1, "ranks": [`), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "flight-d.json"), 0o700))
	j, err := Load(dir)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, j.Write(&b))
	require.Contains(t, b.String(), "rank 0: call 1, barrier of 0 float32 by direct (failed)")
	require.Contains(t, b.String(), `
not read: "`+dir+`/flight-a.json": it is empty, or its end is missing: its writer was killed, or the disk was full

not read: "`+dir+`/flight-d.json": it is a directory, and only regular files are read

not read: "`+dir+`/flight-z.json": it is empty, or its end is missing: its writer was killed, or the disk was full
`)
	require.NoError(t, j.Judge(time.Nanosecond), "files are of a job that has ended")
}

// running returns the records of a running job of the documents' ranks, whose processes are in these states.
func running(d *flight.Document, now time.Time, states ...string) *Records {
	d.Written = now
	j := Merge([]*flight.Document{d})
	j.Running = &shm.RunningJob{Name: "j", Ranks: d.Size, PIDs: make([]int, d.Size), States: states}
	for rank := range states {
		j.Running.PIDs[rank] = 100 + rank
	}
	return j
}

// A rank of a running job that has not come may be late. The age of a call is judged, and so are the states of processes, except those of
// ranks that have left.
func TestHealth(t *testing.T) {
	now := time.Now()
	waits := call(2, "barrier", 0, flight.StateBegun)
	waits.Begun = now.Add(-90 * time.Second)
	calm := func() *flight.Document {
		return first("its memory", []flight.Call{call(1, "barrier", 0, flight.StateDone)}, []flight.Call{call(1, "barrier", 0, flight.StateDone), waits})
	}
	text := func(j *Records) string {
		var b strings.Builder
		require.NoError(t, j.Write(&b))
		return b.String()
	}
	j := running(calm(), now, "running", "running")
	require.Equal(t, `job job, 2 ranks; records from its memory

all ranks
  rank 0: call 1, barrier of 0 float32 by direct (done)
  rank 1: call 2, barrier of 0 float32 by direct (begun for 1m30s)
  not all ranks have come to call 2
    rank 1: barrier of 0 float32 by direct
    rank 0: has not come yet
`, text(j))
	require.NoError(t, j.Judge(0))
	require.NoError(t, j.Judge(2*time.Minute))
	require.EqualError(t, j.Judge(time.Minute), "job j: rank 1: call 2, barrier of 0 float32 by direct (begun for 1m30s), to which rank 0 did not come")

	for state, want := range map[string]string{
		"stopped": "rank 0 (pid 100) is stopped: kill -CONT lets it go on",
		"traced":  "rank 0 (pid 100) is held by a debugger",
		"zombie":  "rank 0 (pid 100) is a zombie: it has ended, and its parent has not waited for it",
		"gone":    "rank 0 (pid 100) has ended",
	} {
		d := calm()
		j = running(d, now, state, "running")
		require.EqualError(t, j.Judge(0), "job j: "+want)
		d.Ranks[0].Groups[0].Left = true
		require.NoError(t, running(d, now, state, "running").Judge(0))
	}
	j = running(calm(), now, "elsewhere", "elsewhere")
	require.NoError(t, j.Judge(0))

	fails := call(2, "barrier", 0, flight.StateFailed)
	fails.Begun, fails.Ended = now.Add(-2*time.Minute), now.Add(-time.Minute)
	d := calm()
	d.Ranks[1].Groups[0].Calls[1] = fails
	require.EqualError(t, running(d, now, "running", "running").Judge(0), "job j: rank 1: call 2, barrier of 0 float32 by direct (failed for 1m0s), to which rank 0 did not come")
	require.Contains(t, text(running(d, now, "running", "running")), "(failed for 1m0s)")
	d.Ranks[0].Groups[0].Calls = append(d.Ranks[0].Groups[0].Calls, call(2, "all_reduce", 8, flight.StateBegun))
	require.EqualError(t, running(d, now, "running", "running").Judge(0), "job j: ranks made different calls number 2 (all ranks)")
	late := first("its memory", nil, []flight.Call{call(1, "all_reduce", 8, flight.StateBegun)}, []flight.Call{call(1, "all_reduce", 9, flight.StateBegun)})
	require.Contains(t, text(running(late, now, "running", "running", "running")), "the first difference: call 1\n    rank 1: all_reduce of 8 float32 by direct\n    rank 2: all_reduce of 9 float32 by direct\n    rank 0: has not come yet\n")

}

// Each rank has a line, with its current call, and the one that the others wait for is named.
func TestSlowRank(t *testing.T) {
	now := time.Now()
	calls := func(late time.Duration) (all []flight.Call) {
		for n := range 6 {
			c := call(uint64(n+1), "barrier", 0, flight.StateDone)
			c.Begun = now.Add(time.Duration(n)*time.Second - 20*time.Second + late)
			c.Ended = now.Add(time.Duration(n)*time.Second - 19500*time.Millisecond)
			all = append(all, c)
		}
		return all
	}
	waits := call(7, "all_reduce", 8, flight.StateBegun)
	waits.Begun = now.Add(-12 * time.Second)
	d := first("its memory", append(calls(0), waits), calls(250*time.Millisecond), calls(0), nil)
	d.Ranks[2].Groups[0].Left = true
	d.Ranks[2].Messages = []flight.Message{{Number: 1, Kind: "recv", State: flight.StateBegun}}
	d.Ranks[1].Messages = []flight.Message{{Number: 4, Kind: "recv", Peer: 0, Type: "int8", Count: 1, State: flight.StateBegun}}
	d.Ranks = d.Ranks[:3]
	text := func(h *Health) string {
		var b strings.Builder
		require.NoError(t, h.Write(&b))
		return b.String()
	}
	h := running(d, now, "running", "stopped", "gone", "elsewhere").Health(time.Minute)
	require.Equal(t, "job j: rank 1 (pid 101) is stopped: kill -CONT lets it go on", h.Problem)
	require.Equal(t, `job j, 4 ranks
  rank 0: call 7, all_reduce of 8 float32 by direct (begun for 12s)
  rank 1: message 4, recv of 1 int8 from rank 0, tag 0 (begun); is stopped: kill -CONT lets it go on; 100% of the waiting is for it, 25.0% of the others' time
  rank 2: it has left the job; has ended
  rank 3: no call is recorded; in another pid namespace
rank 1 is slow: the others wait 25% of their time for it, in the last 5 calls (5 s)
`, text(h))
	require.Equal(t, []any{12., 1, 0.25}, []any{h.Ranks[0].Seconds, *h.Slow, h.Ranks[1].Ratio})
	require.False(t, h.IsGone)

	h = running(d, now, "running", "running", "gone", "running").Health(10 * time.Second)
	require.Contains(t, h.Problem, "job j: rank 0: call 7, all_reduce of 8 float32 by direct (begun for 12s), to which ranks 1, 2 ")
	h = running(d, now, "gone", "zombie", "gone", "gone").Health(time.Minute)
	require.True(t, h.IsGone)

	d = first("its memory", calls(0), calls(0))
	require.Contains(t, text(running(d, now, "running", "running").Health(time.Minute)), "\nno rank is slow, in the last 5 calls (5 s)\n")
	j := running(d, now, "running", "running")
	j.Written = now.Add(time.Hour)
	h = j.Health(time.Minute)
	require.Contains(t, text(h), "  rank 0: in no call\n  rank 1: in no call\nwho is slow is not known: no calls of the last minute have times")
	require.Empty(t, h.Problem)
}

func TestNoJob(t *testing.T) {
	_, err := Running("no-such-job")
	require.Error(t, err)
	_, err = Load(t.TempDir())
	require.ErrorContains(t, err, "no flight records")
}

// A program is shown as it was typed, without its directory, and on one line.
func TestProgram(t *testing.T) {
	require.Empty(t, program(""))
	require.Equal(t, "train", program("/tmp/bin/train\x00"))
	require.Equal(t, "train -name a b  c", program("./train\x00-name\x00a b\n\x1bc\x00"))
	long := program("train\x00" + strings.Repeat("ä", 100))
	require.Equal(t, "train "+strings.Repeat("ä", 39)+"...", long)
}
