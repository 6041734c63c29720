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
	chosen map[string]bool // choices that were logged; nil: they are not
	warned map[string]bool // labels that the ranks of a call differ in

	logsTotals bool // when the communicator is closed
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

// logJoined logs that New has made the communicator. With level info its totals are logged, too.
func (j *journal) logJoined(transport string) {
	if j.logs(slog.LevelInfo) {
		j.log(slog.LevelInfo, "joined a group", "ranks", j.size, "transport", transport)
		j.logsTotals = true
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

// origin is when times of meters and of Works begin: reading the time since then is half the work
// of time.Now.
var origin = time.Now()

// logTotals logs what the calls have cost. No call runs any more.
func (e *engine) logTotals() {
	if !e.journal.logsTotals {
		return
	}
	for _, sum := range e.records.counters() {
		if sum.Duration == 0 {
			continue
		}
		e.journal.log(slog.LevelInfo, "totals", "collective", sum.Collective, "calls", sum.Calls, "bytes", sum.Bytes,
			"time", sum.Duration.Round(time.Microsecond), "waiting", fmt.Sprintf("%.1f%%", 100*float64(sum.Waiting)/float64(sum.Duration)))
	}
}
