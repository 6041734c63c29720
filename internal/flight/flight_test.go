package flight

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func newBook(t *testing.T) (*Book, []byte) {
	t.Helper()
	part := make([]byte, PartBytes(2))
	return NewBook(part, 1, 42), part
}

func read(t *testing.T, part []byte) Rank {
	t.Helper()
	r, ok := Read(part)
	if !ok {
		t.Fatal("no rank has recorded anything")
	}
	return r
}

// What a rank records is what others read.
func TestCalls(t *testing.T) {
	b, part := newBook(t)
	var l Lane
	b.Open(&l, Group{ID: 7, Name: "of ranks 0-1", Rank: 1, Size: 2, Joined: 3})
	what := b.NewWhat("reduce", "float32", "sum", "ring")
	l.Begin(4, what.WithRoot(1), 1024, "layer 12", true)
	l.Inside()
	l.End(true)
	l.Reject(5, b.NewWhat("scan", "int8", "", ""), 3, "wrong")
	l.Begin(6, b.NewWhat("barrier", "", "", ""), 0, "", false)
	r := read(t, part)
	if r.Rank != 1 || r.PID != 42 || len(r.Groups) != 1 {
		t.Fatalf("%+v", r)
	}
	g := r.Groups[0]
	if g.ID != "0000000000000007" || g.ID != l.Group() || g.Name != "of ranks 0-1" || g.Rank != 1 || g.Size != 2 || g.Left {
		t.Errorf("%+v", g)
	}
	c := g.Calls[0]
	if c.Begun.After(c.Ended) || time.Since(c.Begun).Abs() > time.Minute {
		t.Errorf("begun %v, ended %v", c.Begun, c.Ended)
	}
	var texts []string
	for _, c := range g.Calls {
		texts = append(texts, c.String())
	}
	want := []string{
		`call 1, reduce of 1024 float32, sum, root 1 by ring "layer 12" (done)`,
		`call 2, scan of 3 int8 "wrong" (rejected)`,
		`call 3, barrier (begun)`,
	}
	if !reflect.DeepEqual(texts, want) {
		t.Errorf("got %q", texts)
	}
	l.Inside()
	if last := read(t, part).Groups[0].Calls[2]; last.State != StateInside {
		t.Errorf("%+v", last)
	}
	l.End(false)
	if last := read(t, part).Groups[0].Calls[2]; last.State != StateFailed || !last.Begun.IsZero() || !last.Ended.IsZero() {
		t.Errorf("%+v", last)
	}
}

// A call that waits asleep has the time of its begin for as long as it runs, and keeps both times if it fails.
func TestSleep(t *testing.T) {
	b, part := newBook(t)
	var l Lane
	b.Open(&l, Group{Size: 2})
	last := func() Call {
		calls := read(t, part).Groups[0].Calls
		return calls[len(calls)-1]
	}
	for n, ok := range []bool{true, false} {
		l.Begin(uint64(n+1), b.NewWhat("barrier", "", "", ""), 0, "", false)
		if c := last(); !c.Begun.IsZero() {
			t.Errorf("it has not slept: %+v", c)
		}
		l.Sleep(time.Hour)
		begun := last().Begun
		if age := time.Since(begun); age < time.Hour || age > 2*time.Hour {
			t.Errorf("it began %v ago, want an hour", age)
		}
		l.Inside()
		l.End(ok)
		if c := last(); ok != c.Begun.IsZero() || ok != c.Ended.IsZero() || !ok && (!c.Begun.Equal(begun) || c.Ended.Sub(begun) < time.Hour) {
			t.Errorf("%+v", c)
		}
	}
	l.Begin(3, b.NewWhat("barrier", "", "", ""), 0, "", true)
	begun := last().Begun
	if l.Sleep(time.Hour); !last().Begun.Equal(begun) {
		t.Error("a call that has times has another begin")
	}
}

// A lane keeps the last calls, in order.
func TestRing(t *testing.T) {
	b, part := newBook(t)
	var l Lane
	b.Open(&l, Group{Size: 2})
	what := b.NewWhat("barrier", "", "", "")
	for n := range uint64(3*LaneRecords + 7) {
		l.Begin(n+1, what, 0, "", false)
		l.End(true)
	}
	calls := read(t, part).Groups[0].Calls
	if len(calls) != LaneRecords || calls[0].Number != 2*LaneRecords+8 || calls[LaneRecords-1].Number != 3*LaneRecords+7 {
		t.Errorf("%d calls, %d to %d", len(calls), calls[0].Number, calls[len(calls)-1].Number)
	}
}

// A rank that dies while it writes a record leaves its number, and nothing that is not true.
func TestTornRecord(t *testing.T) {
	b, part := newBook(t)
	var l Lane
	b.Open(&l, Group{Size: 2})
	l.Begin(1, b.NewWhat("all_reduce", "float32", "sum", "ring"), 5, "", false)
	l.memory.records[l.slot][headWord] = 2<<8 | writing
	calls := read(t, part).Groups[0].Calls
	if want := []Call{{Number: 2, State: StateStarting}}; !reflect.DeepEqual(calls, want) {
		t.Errorf("%+v", calls)
	}
	if text := calls[0].String(); text != "call 2 (starting)" {
		t.Error(text)
	}
}

// Groups take lanes until none is free, then those of closed groups, then the heap.
func TestLanes(t *testing.T) {
	b, part := newBook(t)
	lanes := make([]Lane, (PartBytes(2)-pageBytes)/laneBytes) // more than those beside that of messages
	for i := range lanes {
		b.Open(&lanes[i], Group{ID: uint64(i), Name: fmt.Sprint("group ", i), Size: 2})
		lanes[i].Begin(1, 0, i, "", false)
	}
	last := &lanes[len(lanes)-1]
	if n := len(read(t, part).Groups); n != len(lanes)-1 || last.index != -1 {
		t.Errorf("%d groups have lanes, and the last has %d", n, last.index)
	}
	if g, ok := b.OnHeap(last, 1); !ok || g.Name != fmt.Sprint("group ", len(lanes)-1) || g.Calls[0].Number != 1 {
		t.Errorf("the group on the heap: %v, %+v", ok, g)
	}
	if g, ok := b.OnHeap(&lanes[3], 1); ok {
		t.Errorf("a group that is not on the heap: %+v", g)
	}
	b.Close(&lanes[3])
	b.Close(&lanes[3])
	if g := read(t, part).Groups[3]; !g.Left || len(g.Calls) != 1 {
		t.Errorf("a closed group: %+v", g)
	}
	var next Lane
	b.Open(&next, Group{ID: 99, Name: "next", Size: 2})
	if g := read(t, part).Groups[3]; g.Name != "next" || g.Left || len(g.Calls) != 0 {
		t.Errorf("a group in a closed one's lane: %+v", g)
	}
}

// Counters are by group and collective. Those without a place of their own share one, and those of
// a group whose lane another one takes, or that has none, stay with the rank.
func TestCounters(t *testing.T) {
	b, part := newBook(t)
	lanes := make([]Lane, (PartBytes(2)-pageBytes)/laneBytes)
	for i := range lanes {
		b.Open(&lanes[i], Group{ID: uint64(i), Size: 2})
	}
	reduce, barrier := b.NewWhat("all_reduce", "float32", "sum", "ring"), b.NewWhat("barrier", "", "", "")
	for i := range laneCounters {
		b.name(fmt.Sprint("name ", i))
	}
	late := b.NewWhat("scan", "", "", "")
	first, hidden := &lanes[0], &lanes[len(lanes)-1]
	for _, c := range []Counter{
		{Calls: 1, Bytes: 4, Duration: 3 * time.Second, Waiting: 2 * time.Second},
		{Calls: 1, Failures: 1, Bytes: 8, Duration: 5, Waiting: 1},
	} {
		first.Count(reduce, c)
		hidden.Count(barrier, c)
	}
	first.Count(late, Counter{Calls: 1, Bytes: 16})
	sum := Counter{Collective: "all_reduce", Calls: 2, Failures: 1, Bytes: 12, Duration: 3*time.Second + 5, Waiting: 2*time.Second + 1}
	other := Counter{Collective: "other", Calls: 1, Bytes: 16}
	r := read(t, part)
	if want := []Counter{other, sum}; !reflect.DeepEqual(r.Groups[0].Counters, want) || r.Groups[1].Counters != nil || r.Counters != nil {
		t.Errorf("%+v, %+v, %+v", r.Groups[0].Counters, r.Groups[1].Counters, r.Counters)
	}

	b.Close(first)
	if r := read(t, part); len(r.Groups[0].Counters) != 2 || r.Counters != nil {
		t.Errorf("a closed group: %+v, %+v", r.Groups[0].Counters, r.Counters)
	}
	var next Lane
	b.Open(&next, Group{ID: 99, Name: "next", Size: 2})
	b.Close(hidden)
	b.Close(hidden)
	r = read(t, part)
	sumOfHidden := sum
	sumOfHidden.Collective = "barrier"
	if want := []Counter{other, sum, sumOfHidden}; !reflect.DeepEqual(r.Counters, want) || r.Groups[0].Counters != nil {
		t.Errorf("after the lane was taken: %+v, %+v", r.Counters, r.Groups[0].Counters)
	}
}

// A group that is made again and again counts on in the lane of the one before, and others of other
// ranks keep theirs.
func TestCountersOfGroupsMadeAgain(t *testing.T) {
	b, part := newBook(t)
	barrier := b.NewWhat("barrier", "", "", "")
	var kept, l Lane
	b.Open(&kept, Group{Name: "of ranks 1, 2, made by split, call 1", Size: 2})
	kept.Count(barrier, Counter{Calls: 7})
	b.Close(&kept)
	for n := range 1000 {
		b.Open(&l, Group{ID: uint64(n), Name: fmt.Sprintf("of ranks 0, 1, made by split, call %d of the group of ranks 0-2, made by split, call %d", n, n), Size: 2})
		l.Count(barrier, Counter{Calls: 1})
		b.Close(&l)
		calls := map[string]uint64{}
		r := read(t, part)
		for _, g := range r.Groups {
			for _, c := range g.Counters {
				calls[Series(g.Name)] += c.Calls
			}
		}
		want := map[string]uint64{"of ranks 1, 2": 7, "of ranks 0, 1 of the group of ranks 0-2": uint64(n + 1)}
		if !reflect.DeepEqual(calls, want) || r.Counters != nil {
			t.Fatalf("after %d groups: %v, and %v of closed ones", n+1, calls, r.Counters)
		}
	}
}

// Messages of all groups are in one lane; one that ends after its record was taken changes nothing.
func TestMessages(t *testing.T) {
	b, part := newBook(t)
	var l Lane
	b.Open(&l, Group{ID: 5, Size: 2})
	send, recv := b.NewWhat("send", "int64", "", ""), b.NewWhat("recv", "int64", "", "")
	first := b.BeginMessage(&l, send, 0, 7, 8, "a label that is longer than its room", true)
	b.BeginMessage(&l, recv, -1, 1<<40, 0, "", false)
	b.EndMessage(first, true)
	m := read(t, part).Messages
	if got, want := m[0].String(), `message 1, send of 8 int64 to rank 0, tag 7 "a label that is " (done)`; got != want {
		t.Errorf("got %s", got)
	}
	if m[0].Group != l.Group() || m[0].Ended.Before(m[0].Begun) || m[0].Begun.IsZero() {
		t.Errorf("%+v", m[0])
	}
	if got, want := m[1].String(), "message 2, recv of 0 int64 from any rank, tag 1099511627776 (begun)"; got != want {
		t.Errorf("got %s", got)
	}
	late := b.BeginMessage(&l, send, 0, 7, 8, "", false)
	for range LaneRecords {
		b.BeginMessage(&l, recv, 0, 9, 1, "", false)
	}
	b.EndMessage(late, false)
	b.EndMessage(Pending{}, false)
	for _, m := range read(t, part).Messages {
		if m.State != StateBegun {
			t.Errorf("%+v", m)
		}
	}
}

// A part keeps the last marks, of all groups.
func TestMarks(t *testing.T) {
	b, part := newBook(t)
	var l Lane
	b.Open(&l, Group{ID: 5, Size: 2})
	for n := range MarkRecords + 3 {
		b.Mark(&l, "a label that is longer than its room"[:n+1], n)
	}
	marks := read(t, part).Marks
	if len(marks) != MarkRecords {
		t.Fatalf("%d marks", len(marks))
	}
	for i, m := range marks {
		if m.Number != uint64(i+4) || m.Step != i+3 || m.Group != l.Group() || m.Label != "a label that is longer than its room"[:min(m.Step+1, 24)] {
			t.Errorf("mark %d: %+v", i, m)
		}
		if i > 0 && m.At.Before(marks[i-1].At) {
			t.Errorf("%v is before %v", m.At, marks[i-1].At)
		}
	}
}

// Times of ranks are those of the reader's clock, and the ranks may be those of one node.
func TestOneClock(t *testing.T) {
	parts := make([][]byte, 4)
	begin := time.Now()
	for i, rank := range map[int]int{0: 5, 2: 7, 3: 6} { // part 1 is not used, and 3 overwritten
		parts[i] = make([]byte, PartBytes(3))
		b := NewBook(parts[i], rank, 1)
		var l Lane
		b.Open(&l, Group{Size: 8})
		b.Mark(&l, "", 1)
	}
	all, c := ReadAll(4, func(i int) []byte { return parts[i] })
	if len(all) != 2 || c == 0 || all[0].Rank != 5 || all[1].Rank != 7 {
		t.Fatalf("%+v", all)
	}
	for _, r := range all {
		if at := r.Marks[0].At; at.Before(begin.Add(-time.Minute)) || at.After(time.Now().Add(time.Minute)) {
			t.Errorf("rank %d has marked at %v, and it is %v", r.Rank, at, time.Now())
		}
	}
	if _, ok := Number(parts[1]); ok {
		t.Error("a part that is not used has a rank")
	}
}

// A clock that is set while a job runs moves the times of its calls, and no other change does.
func TestClockThatIsSet(t *testing.T) {
	b, part := newBook(t)
	var l Lane
	b.Open(&l, Group{Size: 2})
	b.Mark(&l, "", 1)
	at := read(t, part).Marks[0].At
	if again := read(t, part).Marks[0].At; !again.Equal(at) {
		t.Errorf("%v, then %v", at, again)
	}
	latest.Add(int64(time.Hour)) // as if it had been ahead before
	if again := read(t, part).Marks[0].At; again.Sub(at).Abs() > time.Minute {
		t.Errorf("%v, then %v", at, again)
	}
}

// Readers see only records that were written as they are, whatever the writer does.
func TestReadersBesideWriter(t *testing.T) {
	b, part := newBook(t)
	var l Lane
	b.Open(&l, Group{Size: 2})
	names := []string{"zero", "one", "two", "three"}
	var whats []What
	for _, n := range names {
		whats = append(whats, b.NewWhat(n, n, n, n))
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			seen := 0
			for {
				select {
				case <-stop:
					if seen == 0 {
						t.Error("a reader saw no call")
					}
					return
				default:
				}
				r, _ := Read(part)
				for _, g := range r.Groups {
					for _, c := range g.Calls {
						if c.State == StateStarting {
							continue
						}
						seen++
						want := names[c.Number%4]
						if c.Count != int(c.Number*3) || c.Collective != want || c.Type != want || c.Op != want || c.Algorithm != want || c.Label != label(c.Number) {
							t.Errorf("torn: %+v", c)
							return
						}
					}
				}
			}
		})
	}
	for n := uint64(1); n < 200_000; n++ {
		l.Begin(n, whats[n%4], int(n*3), label(n), false)
		l.Inside()
		l.End(n%5 > 0)
	}
	close(stop)
	all.Wait()
}

func label(n uint64) string { return strings.Repeat(string(rune('a'+n%20)), int(n%9)) }

// More names than the table has are not recorded; the others stay.
func TestNames(t *testing.T) {
	b, part := newBook(t)
	for i := range 2 * maxNames {
		b.name(fmt.Sprint("name ", i))
	}
	var l Lane
	b.Open(&l, Group{Size: 1})
	l.Begin(1, b.NewWhat("name 3", "one too many", "", strings.Repeat("x", 40)), 1, "", false)
	if c := read(t, part).Groups[0].Calls[0]; c.Collective != "name 3" || c.Type != "" || c.Algorithm != "" {
		t.Errorf("%+v", c)
	}
}

// Recording allocates nothing.
func TestRecordingAllocatesNothing(t *testing.T) {
	b, _ := newBook(t)
	var l Lane
	b.Open(&l, Group{Size: 2})
	n, what := uint64(0), b.NewWhat("all_reduce", "float32", "sum", "ring")
	labels := []string{"", "one", "a label that is longer than its room"}
	if allocated := testing.AllocsPerRun(200, func() {
		n++
		l.Begin(n, what, 1, labels[n%3], n%2 == 0)
		l.Inside()
		l.End(true)
		b.EndMessage(b.BeginMessage(&l, what, 1, 2, 3, "x", true), true)
		b.Mark(&l, labels[n%3], 1)
		l.Count(what, Counter{Calls: 1})
	}); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// A document that was written is the one that is read.
func TestDocument(t *testing.T) {
	b, part := newBook(t)
	var l Lane
	b.Open(&l, Group{ID: 1, Size: 2, Rank: 1})
	l.Begin(1, b.NewWhat("broadcast", "int8", "", "tree").WithRoot(0), 3, "x", true)
	l.End(true)
	l.Count(b.NewWhat("broadcast", "", "", ""), Counter{Calls: 1, Bytes: 3, Duration: time.Second, Waiting: time.Millisecond})
	b.BeginMessage(&l, b.NewWhat("send", "int8", "", ""), 0, 0, 1, "", true)
	b.Mark(&l, "backward", 7)
	d := &Document{Version: Version, Job: "job-1", Size: 2, Writer: "rank 1", Written: time.Now().UTC(), Ranks: []Rank{read(t, part)}}
	dir := filepath.Join(t.TempDir(), "new", "directory")
	for range 2 { // the second replaces the first
		if err := d.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != "flight-job-1-rank-1.json" {
		t.Errorf("%v %v", files, err)
	}
	loaded, _, err := Load(dir)
	if err != nil || len(loaded) != 1 || !reflect.DeepEqual(loaded[0], d) {
		t.Errorf("got %+v, %v, want %+v", loaded, err, d)
	}
	if _, _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no flight records") {
		t.Errorf("an empty directory: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                     "no flight record",
		``:                                       "it is empty, or its end is missing",
		`{"version": 1, "ranks": [`:              "it is empty, or its end is missing",
		`{"version": 2}`:                         "version is 2",
		`{"version": 1, "ranks": [{"rank":-1}]}`: "rank -1",
		`{"version": 1, "ranks": [{"groups": [{"rank": 2, "size": 2}]}]}`:                                 "rank 2 of 2",
		`{"version": 1, "ranks": [{"groups": [{"size": 2, "calls": [{"number": 3, "state": "lost"}]}]}]}`: `state "lost"`,
		`{"version": 1, "ranks": [{"messages": [{"number": 3, "state": ""}]}]}`:                           `state ""`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
