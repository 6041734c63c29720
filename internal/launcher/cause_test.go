package launcher

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/require"

	faults "github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/launchenv"
)

func TestCauseTexts(t *testing.T) {
	texts := golden.Errors(t)
	r := &launchenv.Report{Message: "panic: a\nb", Frames: []launchenv.Frame{{Function: "main.f", File: "/x/a.go", Line: 7}}, Cause: faults.Timeout}
	ranks := []Rank{{PID: 10, Exit: 4, Report: r}, {PID: 11, Signal: syscall.SIGTERM, Asked: syscall.SIGTERM}, {PID: 12, Exit: 1}}
	for want, e := range map[string]*EndedError{
		`rank 1 (pid 11) was waited for in vain: the job failed after 1s
  rank 0 says: panic: a
  b
    in main.f at a.go:7
  rank 0: failed because of that, with exit status 4
  rank 1: ended by SIGTERM
  rank 2: failed as well, with exit status 1`: {Cause: CauseSilent, First: 1, Blamed: []int{1}},
		`ranks 1, 2 waited for each other: the job failed after 1s
  rank 0 says: panic: a
  b
    in main.f at a.go:7
  rank 0: failed because of that, with exit status 4
  rank 1: ended by SIGTERM
  rank 2: ended with exit status 1`: {Cause: CauseCircle, First: 1, Blamed: []int{1, 2}},
		`ranks 1 -> 2 -> 1 waited for each other, a deadlock: the job failed after 1s
  rank 0 says: panic: a
  b
    in main.f at a.go:7
  rank 0: failed because of that, with exit status 4
  rank 1: ended by SIGTERM
  rank 2: ended with exit status 1`: {Cause: CauseDeadlock, First: 1, Blamed: []int{1, 2}},
		`rank 0 (pid 10) failed because of another rank, after 1s: exit status 4
  panic: a
  b
    in main.f at a.go:7
  rank 1: ended by SIGTERM
  rank 2: failed as well, with exit status 1`: {Cause: CauseUnknown, Blamed: []int{0}},
		// What the reporter says stands there once.
		`ranks 1, 2 made another call than the others: the job failed after 1s
  rank 0 says: panic: a
  b
    in main.f at a.go:7
  the last that rank 1 wrote to standard error:
    hello
  rank 0: failed because of that, with exit status 4
  rank 1: ended by SIGTERM
  rank 2: ended with exit status 1`: {
			Cause: CauseMismatch, First: 1, Blamed: []int{1, 2}, Output: []string{"hello", "step 3: aborted by rank 0: panic: a"}, OutputName: "standard error",
		},
		`rank 2 (pid 12) left while others needed it: the job failed after 1s
  the last that it wrote to standard error:
    hello
  rank 0: failed because of that, with exit status 4
  rank 1: ended by SIGTERM
  rank 2: ended with exit status 1`: {Cause: CauseLeft, First: 2, Reporter: 2, Blamed: []int{2}, Output: []string{"hello"}, OutputName: "standard error"},
	} {
		e.Ranks, e.After = ranks, time.Second
		r.Rank = 0
		r.Ranks = []int{1}
		require.EqualError(t, e, want)
		texts.Add(fmt.Sprint(e.Cause), e)
		want := 4 // of the rank that was seen to fail first
		if e.First == 2 {
			want = 1
		}
		require.Equal(t, want, e.ExitCode())
	}
}

func TestMismatchTexts(t *testing.T) {
	texts := golden.Errors(t)
	says := func(rank int, ranks ...int) Rank {
		return Rank{PID: 10 + rank, Exit: 1, Report: &launchenv.Report{
			Rank: rank, Message: "ranks disagree on count", Cause: faults.Mismatch, Ranks: ranks,
		}}
	}
	for want, e := range map[string]*EndedError{
		`rank 1 (pid 11) made another call than the others: the job failed after 1s
  ranks disagree on count
  rank 0: failed because of that, with exit status 1
  rank 1: ended with exit status 1`: {Ranks: []Rank{says(0, 1), says(1, 1)}, First: 1, Reporter: 1, Blamed: []int{1}},
		`ranks 0, 1 made different calls: the job failed after 1s
  ranks disagree on count
  ranks 0, 1: ended with exit status 1`: {Ranks: []Rank{says(0, 0, 1), says(1, 0, 1)}, Blamed: []int{0, 1}},
		`ranks 0, 1 made another call than the others: the job failed after 1s
  ranks disagree on count
  ranks 0, 1: ended with exit status 1
  ranks 2-4: failed because of that, with exit status 1`: {Ranks: []Rank{says(0, 0, 1), says(1, 0, 1), says(2, 0, 1), says(3, 0, 1), says(4, 0, 1)}, Blamed: []int{0, 1}},
		// What the rank has written from the message on contains the rest of the chain.
		`rank 0 (pid 10) made another call than the others: the job failed after 1s
  the last that it wrote to standard error:
    step 7: ranks disagree on count
    bye
  rank 0: ended with exit status 1`: {Ranks: []Rank{says(0, 0)}, Blamed: []int{0}, Output: []string{"hello", "step 7: ranks disagree on count", "bye"}, OutputName: "standard error"},
	} {
		e.Cause, e.After = CauseMismatch, time.Second
		require.EqualError(t, e, want)
		texts.Add(fmt.Sprint(len(e.Ranks), " of ", e.Blamed), e)
	}
}

// Where ranks were that others waited for.
func TestPlaces(t *testing.T) {
	f := func(function string) launchenv.Frame {
		return launchenv.Frame{Function: function, File: "/x/a.go", Line: 7}
	}
	goroutine := func(number int, state string, functions ...string) launchenv.Goroutine {
		g := launchenv.Goroutine{Number: number, State: state}
		for _, function := range functions {
			g.Frames = append(g.Frames, f(function))
		}
		return g
	}
	const spawn, runs = "github.com/goccl/goccl/dist.Spawn", "github.com/goccl/goccl/dist.(*rank).run"
	idle := goroutine(0, "idle", "runtime.futex")
	waits := goroutine(1, "chan receive", spawn, "main.main")
	first := goroutine(1, "sleep", "time.Sleep", "main.main")
	worker := goroutine(7, "semacquire", "sync.(*Mutex).Lock", "main.step", runs)
	loader := goroutine(9, "IO wait", "os.(*File).Read", "main.load")
	poller := goroutine(3, "select", "github.com/goccl/goccl/ccl.poll")

	_, ok := locate(2, nil)
	require.False(t, ok)
	_, ok = locate(2, []launchenv.Goroutine{idle})
	require.False(t, ok)
	p, ok := locate(2, []launchenv.Goroutine{idle, poller})
	require.True(t, ok)
	require.Equal(t, Location{Rank: 2, Goroutines: []launchenv.Goroutine{poller}}, p, "nothing is the program's own")
	p, _ = locate(2, []launchenv.Goroutine{idle, loader, first})
	require.Equal(t, []launchenv.Goroutine{first, loader}, p.Goroutines)
	all := []launchenv.Goroutine{idle, loader, waits, poller, worker, loader, loader, loader}
	p, _ = locate(2, all)
	require.Equal(t, []launchenv.Goroutine{worker, loader, loader, loader, loader}, p.Goroutines)

	running := goroutine(8, "running") // on another thread, which the runtime did not stop
	unseen, _ := locate(4, []launchenv.Goroutine{idle, waits, loader, running, running})
	p, _ = locate(2, append(all, running))
	require.Equal(t, []launchenv.Goroutine{worker, loader, loader, loader, loader}, p.Goroutines)

	same, _ := locate(3, all)
	elsewhere, _ := locate(5, []launchenv.Goroutine{first})
	var b strings.Builder
	writeLocations(&b, []Location{p, same, unseen, elsewhere})
	require.Equal(t, `
  ranks 2, 3 were here (semacquire):
    in main.step at a.go:7
    another goroutine (IO wait): in main.load at a.go:7
    another goroutine (IO wait): in main.load at a.go:7
    another goroutine (IO wait): in main.load at a.go:7
    and 1 more goroutines
  rank 4 was running (the Go runtime could not stop it in time to show where)
    another goroutine was running (the Go runtime could not stop it in time to show where)
    another goroutine (IO wait): in main.load at a.go:7
  rank 5 was here (sleep):
    in main.main at a.go:7`, b.String())

	b.Reset()
	writeLocations(&b, []Location{{Rank: 6, Stopped: true}})
	require.Equal(t, "\n  rank 6 was stopped, by SIGSTOP, SIGTTIN (it read the terminal) or a debugger", b.String())

	b.Reset()
	var many []Location
	for i := range 6 {
		many = append(many, Location{Rank: i, Goroutines: []launchenv.Goroutine{goroutine(1, fmt.Sprint("state ", i), "main.main")}})
	}
	writeLocations(&b, many)
	require.Equal(t, 4, strings.Count(b.String(), " was here "))
	require.True(t, strings.HasSuffix(b.String(), "\n  and 2 more places"), b.String())
}
