package failure

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Which rank is to blame, by the ranks' reports and ends.
func TestBlame(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	says := func(rank, ms int, how Kind, ranks ...int) Rank {
		return Rank{HasFailed: true, Ended: at(100 + rank), Report: &Report{Kind: how, Ranks: ranks, Time: at(ms)}}
	}
	call := func(r Rank) Rank { r.Report.MayRecover = true; return r }
	awaits := func(peer int, r Rank) Rank { r.Report.Awaited = &peer; return r }
	joining := func(r Rank) Rank { r.Report.IsJoining = true; return r }
	alive := func(r Rank) Rank { r.HasFailed = false; return r }
	dead := func(ms int) Rank { return Rank{HasFailed: true, Ended: at(ms)} }
	returned := Rank{Ended: at(1)}
	const aborted, lost, timeout, canceled, mismatch, shared = Aborted, PeerLost, Timeout, Canceled, Mismatch, Shared
	text := func(text string, r Rank) Rank { r.Report.Text = text; return r }
	for _, c := range []struct {
		name     string
		ranks    []Rank
		cause    Cause
		blamed   []int
		reporter int
	}{
		{"a death", []Rank{{}, dead(5), {}}, ByItself, []int{1}, 1},
		{"the first of two deaths", []Rank{dead(7), dead(5)}, ByItself, []int{1}, 1},
		{"of deaths seen late, the one that a rank has seen", []Rank{dead(5), dead(7), says(2, 6, lost, 1)}, ByItself, []int{1}, 1},
		{"an error", []Rank{says(0, 6, aborted, 1), says(1, 5, 0), {}}, ByItself, []int{1}, 1},
		{"an error of a rank that still runs", []Rank{says(0, 6, aborted, 1), alive(says(1, 5, 0)), {}}, ByItself, []int{1}, 1},
		{"the first of two errors", []Rank{says(0, 6, 0), says(1, 5, 0)}, ByItself, []int{1}, 1},
		{"an error before a death", []Rank{says(0, 5, 0), dead(6)}, ByItself, []int{0}, 0},
		{"a call that failed, and its program went on", []Rank{alive(call(says(0, 1, 0))), dead(6), call(says(2, 6, lost, 1))}, ByItself, []int{1}, 1},
		{"a call that failed, and its program ended", []Rank{call(says(0, 7, lost, 1)), call(says(1, 6, 0))}, ByItself, []int{1}, 1},
		{"an interrupted rank", []Rank{says(0, 6, aborted, 1), says(1, 5, canceled)}, ByItself, []int{1}, 1},
		{"a rank that is gone", []Rank{says(0, 6, lost, 1), returned, {}}, Left, []int{1}, 0},
		{"a silent rank", []Rank{says(0, 6, timeout, 1), {}, says(2, 7, timeout, 1)}, Silent, []int{1}, 0},
		{"silent ranks", []Rank{says(0, 6, timeout, 1, 2), {}, {}}, Silent, []int{1, 2}, 0},
		{"a rank that hears that it is late", []Rank{says(0, 6, timeout, 1), says(1, 7, timeout, 1)}, Silent, []int{1}, 0},
		{"the end of a chain", []Rank{says(0, 6, timeout, 1), says(1, 7, timeout, 2), {}}, Silent, []int{2}, 1},
		{"a circle", []Rank{says(0, 6, timeout, 1), says(1, 5, timeout, 2), says(2, 7, timeout, 0), {}}, Circle, []int{0, 1, 2}, 1},
		{"a circle with one rank that most wait for", []Rank{says(0, 5, timeout, 1, 2), says(1, 6, timeout, 0), says(2, 7, timeout, 0)}, Difference, []int{0}, 0},
		{"a circle of ranks that join", []Rank{joining(says(0, 5, timeout, 1, 2)), joining(says(1, 6, timeout, 0)), joining(says(2, 7, timeout, 0))}, Circle, []int{0, 1, 2}, 0},
		{"one that has lost a rank that waited for it", []Rank{says(0, 7, lost, 2), says(1, 6, timeout, 0), says(2, 5, timeout, 0)}, Difference, []int{0}, 2},
		{"one that others have lost when they waited for it", []Rank{says(0, 5, timeout, 1, 2), says(1, 6, lost, 0), says(2, 7, aborted, 0)}, Difference, []int{0}, 0},
		{"two ranks of five in another group", []Rank{says(0, 5, timeout, 2, 3, 4), says(1, 6, timeout, 2, 3, 4), says(2, 7, timeout, 0, 1), says(3, 8, timeout, 0, 1), says(4, 9, timeout, 0, 1)}, Difference, []int{0, 1}, 0},
		{"two groups of two", []Rank{says(0, 5, timeout, 2, 3), says(1, 6, timeout, 2, 3), says(2, 7, timeout, 0, 1), says(3, 8, timeout, 0, 1)}, Circle, []int{0, 1, 2, 3}, 0},
		{"three ranks in three groups", []Rank{says(0, 5, timeout, 1, 2), says(1, 6, timeout, 0, 2), says(2, 7, timeout, 0, 1)}, Circle, []int{0, 1, 2}, 0},
		{"two ranks in two groups, which others have lost", []Rank{says(0, 5, timeout, 1), says(1, 6, timeout, 0), says(2, 7, aborted, 0), says(3, 8, lost, 0)}, Circle, []int{0, 1}, 0},
		{"messages in a circle, one of which is not known", []Rank{awaits(1, says(0, 6, timeout, 1)), awaits(2, says(1, 5, timeout, 2)), says(2, 7, lost, 1)}, Circle, []int{1, 2}, 1},
		{"a deadlock of messages", []Rank{awaits(1, says(0, 7, timeout, 2)), awaits(2, says(1, 6, timeout, 2)), awaits(0, says(2, 8, timeout, 2))}, Deadlock, []int{0, 1, 2}, 1},
		{"a deadlock that one gives up, and leaves", []Rank{awaits(1, says(0, 6, timeout, 1)), awaits(2, says(1, 8, lost, 2)), awaits(0, says(2, 7, lost, 0))}, Deadlock, []int{0, 1, 2}, 0},
		{"a rank that is lost, and has given up a wait", []Rank{awaits(1, says(0, 6, timeout, 1)), says(1, 7, lost, 0)}, Circle, []int{0, 1}, 0},
		{"a deadlock beside a rank that waits for it", []Rank{awaits(1, says(0, 6, timeout, 1)), awaits(2, says(1, 7, timeout, 1)), awaits(1, says(2, 8, timeout, 1))}, Deadlock, []int{1, 2}, 0},
		{"waits that end at a silent rank", []Rank{awaits(1, says(0, 6, timeout, 2)), awaits(2, says(1, 7, timeout, 2)), {}}, Silent, []int{2}, 0},
		{"a late rank, which has not waited", []Rank{awaits(1, says(0, 6, timeout, 2)), awaits(2, says(1, 7, timeout, 2)), says(2, 8, timeout, 2)}, Silent, []int{2}, 0},
		{"a rank that waits for itself", []Rank{awaits(1, says(0, 6, timeout, 1)), awaits(1, says(1, 7, timeout, 1))}, Silent, []int{1}, 0},
		{"a wait for a rank that is none", []Rank{awaits(7, says(0, 6, timeout, 1)), {}}, Silent, []int{1}, 0},
		{"a rank that differs", []Rank{says(0, 5, mismatch, 1), says(1, 6, mismatch, 1), says(2, 7, mismatch, 1)}, Difference, []int{1}, 1},
		{"a rank that differs and still runs", []Rank{says(0, 5, mismatch, 1), alive(call(says(1, 6, mismatch, 1)))}, Difference, []int{1}, 0},
		{"a rank that differs and is silent", []Rank{says(0, 5, mismatch, 1), {}}, Difference, []int{1}, 0},
		{"ranks that differ", []Rank{says(0, 6, mismatch, 0, 1), says(1, 5, mismatch, 0, 1)}, Difference, []int{0, 1}, 1},
		{"a rank that differs from none", []Rank{says(0, 6, mismatch, 0, 7), {}}, Difference, []int{0}, 0},
		{"a rank that is named twice", []Rank{says(0, 6, mismatch, 1, 0, 1), {}}, Difference, []int{0, 1}, 0},
		{"an error before a difference", []Rank{says(0, 5, 0), says(1, 6, mismatch, 1)}, ByItself, []int{0}, 0},
		{"an error of one rank that all get", []Rank{says(0, 5, shared, 1), says(1, 6, shared, 1), says(2, 4, shared, 1)}, Alike, []int{1}, 1},
		{"an error of a rank that was ended before it reported", []Rank{says(0, 6, shared, 1), {}, says(2, 5, shared, 1)}, Alike, []int{1}, 2},
		{"an error of some ranks that all get", []Rank{says(0, 5, shared, 1, 2), says(1, 7, shared, 1, 2), says(2, 6, shared, 1, 2)}, Alike, []int{1, 2}, 2},
		{"an error of all ranks", []Rank{{}, says(1, 5, shared, 0, 1, 2), {}}, Alike, []int{0, 1, 2}, 1},
		{"an error of all ranks of one", []Rank{says(0, 5, shared, 0)}, ByItself, []int{0}, 0},
		{"a death before an error of all ranks", []Rank{says(0, 6, shared, 0, 1, 2), dead(5), says(2, 7, shared, 0, 1, 2)}, ByItself, []int{1}, 1},
		{"the same error on all ranks", []Rank{text("a", says(0, 6, 0)), text("a", says(1, 5, 0))}, Alike, []int{0, 1}, 1},
		{"the same error on all ranks but one", []Rank{text("a", says(0, 6, 0)), text("a", says(1, 5, 0)), {}}, ByItself, []int{1}, 1},
		{"different errors", []Rank{text("a", says(0, 6, 0)), text("b", says(1, 5, 0))}, ByItself, []int{1}, 1},
		{"a rank that brings another value", []Rank{says(0, 5, Unequal, 1), says(1, 6, Unequal, 1)}, Difference, []int{1}, 1},
		{"nothing to go by", []Rank{says(0, 6, lost), says(1, 7, lost)}, Unknown, nil, -1},
		{"a rank that is none", []Rank{says(0, 6, lost, 7)}, Unknown, nil, -1},
	} {
		v := Blame(c.ranks)
		require.Equal(t, c.cause, v.Cause, c.name)
		require.Equal(t, c.blamed, v.Blamed, c.name)
		require.Equal(t, c.reporter, v.Reporter, c.name)
	}
}

// The verdict does not depend on the numbers of the ranks: a death is seen late, and the one that
// others have lost came before the other.
func TestBlameOfAnyNumbering(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	failed := map[string]Rank{
		"lost":     {HasFailed: true, Ended: at(7)},
		"died":     {HasFailed: true, Ended: at(5)},
		"error":    {HasFailed: true, Report: &Report{Time: at(6)}},
		"reporter": {HasFailed: true, Report: &Report{Kind: PeerLost, Time: at(8)}},
	}
	for _, names := range [][]string{
		{"lost", "died", "error"}, {"lost", "error", "died"}, {"died", "lost", "error"},
		{"died", "error", "lost"}, {"error", "lost", "died"}, {"error", "died", "lost"},
	} {
		names = append(names, "reporter")
		failed["reporter"].Report.Ranks = []int{slices.Index(names, "lost")}
		ranks := make([]Rank, len(names))
		for i, name := range names {
			ranks[i] = failed[name]
		}

		var order []string
		for _, i := range Blame(ranks).Order {
			order = append(order, names[i])
		}
		require.Equal(t, []string{"lost", "died", "error", "reporter"}, order, "%q", names)
	}
}

// All ranks that have failed stand in order: those that failed by themselves, those that waited in
// vain, those whose context ended, and those that others made fail.
func TestOrder(t *testing.T) {
	says := func(ms int, how Kind, ranks ...int) Rank {
		return Rank{HasFailed: true, Report: &Report{Kind: how, Ranks: ranks, Time: time.UnixMilli(int64(ms))}}
	}
	ranks := []Rank{says(1, Aborted, 4), says(2, Canceled), says(3, Timeout, 5), {}, says(4, 0), says(5, Stuck, 5), says(6, 0), says(0, Rejected, 8), says(7, Canceled)}
	require.Equal(t, []int{4, 6, 8, 2, 5, 1, 7, 0}, Blame(ranks).Order)
	require.Equal(t, []int{}, Blame(make([]Rank, 3)).Order)
}

// A kind has one name, which reports have, and no other text is one.
func TestKindNames(t *testing.T) {
	for k := Kind(0); k <= Unequal; k++ {
		text, err := k.MarshalText()
		require.NoError(t, err)
		var again Kind
		require.NoError(t, again.UnmarshalText(text))
		require.Equal(t, k, again)
	}
	require.Error(t, new(Kind).UnmarshalText([]byte("kind 11")))
	require.Equal(t, "kind 11", Kind(11).String())
}
