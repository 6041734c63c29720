package ccl

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// A communicator logs through the logger of WithLogger: that it has joined, at level info; each
// choice of a kernel once, at debug; a call that has waited for half of its timeout, at warn; the
// call in which its group fails, at error; and the totals of each collective when it is closed, at
// info.

// journal is the log of one communicator, and what it needs to log.
type journal struct {
	*group
	logger *slog.Logger
	totals *totals         // nil: not logged
	chosen map[string]bool // choices that were logged; nil: they are not
	warned map[string]bool // labels that the ranks of a call differ in
}

func (j *journal) logs(level slog.Level) bool {
	return j.logger.Enabled(context.Background(), level)
}

// log logs a message about this rank of the group.
func (j *journal) log(level slog.Level, message string, attrs ...any) {
	about := []any{"rank", j.rank}
	if j.name != "" {
		about = append(about, "group", j.name)
	}
	j.logger.Log(context.Background(), level, message, append(about, attrs...)...)
}

// logJoined logs that New has made the communicator. With level info it keeps totals from now on.
func (j *journal) logJoined(transport string) {
	if j.logs(slog.LevelInfo) {
		j.log(slog.LevelInfo, "joined a group", "ranks", j.size, "transport", transport)
		j.totals = new(totals)
	}
	if j.logs(slog.LevelDebug) {
		j.chosen = map[string]bool{}
	}
}

// logChoice logs the kernel for a shape, unless one of the same entry was chosen for the same
// collective and reason before.
func (j *journal) logChoice(s Shape, choice *Choice) {
	key := fmt.Sprint(s.Collective, choice.Entry, choice.Why)
	if j.chosen == nil || j.chosen[key] {
		return
	}
	j.chosen[key] = true
	j.log(slog.LevelDebug, "chose an algorithm", "collective", s.Collective, "algorithm", choice.Entry, "why", choice.Why,
		"first_for", s.String())
}

// warnOf logs that the current call has waited for half of its timeout, or of the group's if it has
// none. The transport calls it in the goroutine of the call.
func (e *engine) warnOf(seq uint64, missing []int) {
	if !e.journal.logs(slog.LevelWarn) {
		return
	}
	attrs := []any{"call", e.number(seq), "missing", missing}
	if r := &e.call.request; r.coll != 0 { // not in New
		call := e.newCallError(nil)
		if at := caller(true); at != nil && !call.Async {
			call.File, call.Line = at.file, at.line
		}
		attrs = append(attrs, "collective", callText(call.Operation, call.Label, call.DType, call.Count, e.call.plan.choice.Entry),
			"where", strings.TrimSpace(call.at()+call.hint()))
		for _, text := range lastTexts(e.records.lastCalls(missing, e.number(seq), false), false) {
			attrs = append(attrs, "last", text)
		}
	}

	text := "a collective has waited for half of its timeout"
	if e.call.opts.timeout < 0 {
		text = "a collective that has no timeout still waits"
	}
	e.journal.log(slog.LevelWarn, text, attrs...)
}

// logFailure logs the error of the call in which the group fails, or of a message.
func (j *journal) logFailure(err error) {
	j.log(slog.LevelError, "a call failed", "error", err)
}

// totals are what the calls of a communicator have cost this rank, by collective. Times are since
// origin.
type totals struct {
	began  time.Duration // the current call
	waited time.Duration // in the current call
	of     [len(collectives)]total
}

type total struct {
	calls, bytes int
	took, waited time.Duration
}

// origin is when times of totals and of Works begin: reading the time since then is half the work
// of time.Now.
var origin = time.Now()

func (t *totals) begin() { t.began, t.waited = time.Since(origin), 0 }

// entered ends the wait with which a call starts.
func (t *totals) entered() { t.waited = time.Since(origin) - t.began }

// wait runs another wait for other ranks.
func (t *totals) wait(f func() error) error {
	began := time.Since(origin)
	err := f()
	t.waited += time.Since(origin) - began
	return err
}

// end adds the current call.
func (t *totals) end(r *request) {
	sum := &t.of[r.coll]
	sum.calls++
	sum.bytes += max(len(r.in.data), len(r.out.data))
	sum.took += time.Since(origin) - t.began
	sum.waited += t.waited
}

// logTotals logs what the calls have cost. No call runs any more.
func (j *journal) logTotals() {
	if j.totals == nil {
		return
	}
	for coll, sum := range j.totals.of {
		if sum.calls == 0 || sum.took == 0 {
			continue
		}
		j.log(slog.LevelInfo, "totals", "collective", Collective(coll), "calls", sum.calls, "bytes", sum.bytes,
			"time", sum.took.Round(time.Microsecond), "waiting", fmt.Sprintf("%.1f%%", 100*float64(sum.waited)/float64(sum.took)))
	}
}
