package launcher

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/launchenv"
)

// Which rank is to blame, by the ranks' reports and ends.
func TestCauses(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	says := func(rank, ms int, how launchenv.Because, ranks ...int) Rank {
		return Rank{Exit: 1, ended: true, died: at(100 + rank), Report: &launchenv.Report{
			Rank: rank, Time: at(ms), Kind: launchenv.FailedError, Because: how, Ranks: ranks,
		}}
	}
	call := func(r Rank) Rank { r.Report.Kind = launchenv.FailedCall; return r }
	alive := func(r Rank) Rank { r.ended, r.Exit = false, 0; return r }
	dead := func(ms int) Rank { return Rank{Signal: syscall.SIGKILL, ended: true, died: at(ms)} }
	returned := Rank{ended: true, died: at(1)}
	const (
		aborted, lost, timeout, canceled = launchenv.BecauseAborted, launchenv.BecausePeerLost, launchenv.BecauseTimeout, launchenv.BecauseCanceled
	)
	for _, c := range []struct {
		name     string
		ranks    []Rank
		first    int
		cause    Cause
		blamed   []int
		reporter int
	}{
		{"a death", []Rank{{}, dead(5), {}}, 1, CauseFailed, []int{1}, 1},
		{"the first of two deaths", []Rank{dead(7), dead(5)}, 1, CauseFailed, []int{1}, 1},
		{"of deaths seen late, the one that a rank has seen", []Rank{dead(5), dead(7), says(2, 6, lost, 1)}, 0, CauseFailed, []int{1}, 1},
		{"an error", []Rank{says(0, 6, aborted, 1), says(1, 5, ""), {}}, 0, CauseFailed, []int{1}, 1},
		{"an error of a rank that still runs", []Rank{says(0, 6, aborted, 1), alive(says(1, 5, "")), {}}, 0, CauseFailed, []int{1}, 1},
		{"the first of two errors", []Rank{says(0, 6, ""), says(1, 5, "")}, 0, CauseFailed, []int{1}, 1},
		{"an error before a death", []Rank{says(0, 5, ""), dead(6)}, 1, CauseFailed, []int{0}, 0},
		{"a call that failed, and its program went on", []Rank{alive(call(says(0, 1, ""))), dead(6), call(says(2, 6, lost, 1))}, 2, CauseFailed, []int{1}, 1},
		{"a call that failed, and its program ended", []Rank{call(says(0, 7, lost, 1)), call(says(1, 6, ""))}, 0, CauseFailed, []int{1}, 1},
		{"an interrupted rank", []Rank{says(0, 6, aborted, 1), says(1, 5, canceled)}, 0, CauseFailed, []int{1}, 1},
		{"a rank that is gone", []Rank{says(0, 6, lost, 1), returned, {}}, 0, CauseLeft, []int{1}, 0},
		{"a silent rank", []Rank{says(0, 6, timeout, 1), {}, says(2, 7, timeout, 1)}, 2, CauseSilent, []int{1}, 0},
		{"silent ranks", []Rank{says(0, 6, timeout, 1, 2), {}, {}}, 0, CauseSilent, []int{1, 2}, 0},
		{"a rank that hears that it is late", []Rank{says(0, 6, timeout, 1), says(1, 7, timeout, 1)}, 0, CauseSilent, []int{1}, 0},
		{"the end of a chain", []Rank{says(0, 6, timeout, 1), says(1, 7, timeout, 2), {}}, 0, CauseSilent, []int{2}, 1},
		{"a circle", []Rank{says(0, 6, timeout, 1), says(1, 5, timeout, 2), says(2, 7, timeout, 0), {}}, 0, CauseCircle, []int{0, 1, 2}, 1},
		{"nothing to go by", []Rank{says(0, 6, lost), says(1, 7, lost)}, 1, CauseUnknown, []int{1}, 1},
		{"a rank that is none", []Rank{says(0, 6, lost, 7)}, 0, CauseUnknown, []int{0}, 0},
	} {
		cause, blamed, reporter := blame(c.ranks, c.first)
		require.Equal(t, c.cause, cause, c.name)
		require.Equal(t, c.blamed, blamed, c.name)
		require.Equal(t, c.reporter, reporter, c.name)
	}
}

func TestCauseTexts(t *testing.T) {
	r := &launchenv.Report{Message: "panic: a\nb", Frames: []launchenv.Frame{{Function: "main.f", File: "/x/a.go", Line: 7}}, Because: launchenv.BecauseTimeout}
	ranks := []Rank{{PID: 10, Exit: 4, Report: r}, {PID: 11, Signal: syscall.SIGTERM, Asked: syscall.SIGTERM}, {PID: 12, Exit: 1}}
	for want, e := range map[string]*EndedError{
		`rank 1 (pid 11) was waited for in vain: the job failed after 1s
  rank 0 says: panic: a
  b
    in main.f at a.go:7
  rank 0: failed because of that, with exit status 4
  rank 1: ended by SIGTERM
  rank 2: failed as well, with exit status 1`: {Cause: CauseSilent, First: 1, Blamed: []int{1}},
		`ranks 1-2 waited for each other: the job failed after 1s
  rank 0 says: panic: a
  b
    in main.f at a.go:7
  rank 0: failed because of that, with exit status 4
  rank 1: ended by SIGTERM
  rank 2: failed as well, with exit status 1`: {Cause: CauseCircle, First: 1, Blamed: []int{1, 2}},
		`rank 0 (pid 10) failed because of another rank, after 1s: exit status 4
  panic: a
  b
    in main.f at a.go:7
  rank 1: ended by SIGTERM
  rank 2: failed as well, with exit status 1`: {Cause: CauseUnknown, Blamed: []int{0}},
		`rank 2 (pid 12) left while others needed it: the job failed after 1s
  the last that it wrote to standard error:
    hello
  rank 0: failed because of that, with exit status 4
  rank 1: ended by SIGTERM
  rank 2: failed as well, with exit status 1`: {Cause: CauseLeft, First: 2, Reporter: 2, Blamed: []int{2}, Output: []string{"hello"}, OutputName: "standard error"},
	} {
		e.Ranks, e.After = ranks, time.Second
		r.Rank = 0
		r.Ranks = []int{1}
		require.EqualError(t, e, want)
		want := 4 // of the rank that was seen to fail first
		if e.First == 2 {
			want = 1
		}
		require.Equal(t, want, e.ExitCode())
	}
}
