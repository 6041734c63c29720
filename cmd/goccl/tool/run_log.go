package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goccl/goccl/internal/launcher"
)

// runLog is what `goccl run` itself writes, to standard error.
type runLog struct {
	app  *kong.Context
	text io.Writer
	json *slog.Logger // nil: as text

	endsAlways bool // with a last line, of a job that succeeds as well
}

// newRunLog returns a log that has the node, if there are several.
func (c *runCommand) newRunLog(app *kong.Context, stderr io.Writer) *runLog {
	l := &runLog{app: app, text: stderr, endsAlways: c.Restarts > 0 || c.LogFormat == "json"}
	if c.LogFormat != "json" {
		return l
	}
	if l.json = slog.New(slog.NewJSONHandler(stderr, nil)); c.Nodes > 1 {
		l.json = l.json.With("node", c.NodeRank)
	}
	return l
}

// say writes a line. The prefix is that of the text.
func (l *runLog) say(level slog.Level, prefix, text string, attributes ...any) {
	if l.json != nil {
		l.json.Log(context.Background(), level, text, attributes...)
		return
	}
	_, _ = fmt.Fprintf(l.text, "goccl: %s%s\n", prefix, text) // nobody else can be told
}

// note is say of what the user may want to know.
func (l *runLog) note(text string) { l.say(slog.LevelInfo, "", text) }

// warn is say of a launcher's warning.
func (l *runLog) warn(w launcher.Warning) {
	l.say(slog.LevelWarn, "warning: ", w.Text, ofAttempt(w.Job, w.Restart, w.Rank)...)
}

// restart writes why an attempt has failed, and when the next begins.
func (l *runLog) restart(failed launcher.Attempt, number int, pause time.Duration) {
	job := failed.Outcome.Job
	l.say(slog.LevelWarn, "", failed.Err.Error(), ofAttempt(job, number-1, blamed(failed.Err))...)
	l.say(slog.LevelInfo, "", fmt.Sprintf("restart %d in %v", number, pause.Round(time.Millisecond)), ofAttempt(job, number-1, -1)...)
}

// end writes the error of a job, if any, and the last line: how long the job ran, its restarts and
// its status. Outcome is nil if no rank was started.
func (l *runLog) end(outcome *launcher.Outcome, took time.Duration, err error) {
	job, restarts := "", 0
	if outcome != nil {
		job, restarts = outcome.Job, outcome.Restart
	}
	switch {
	case err == nil:
	case l.json != nil:
		l.say(slog.LevelError, "", err.Error(), ofAttempt(job, restarts, blamed(err))...)
	default:
		l.app.Errorf("%s", err)
	}

	if outcome != nil && (err != nil || l.endsAlways) {
		unit := time.Millisecond
		if took > time.Minute {
			unit = time.Second
		}
		text := fmt.Sprintf("the job ran for %v, with %s: status %d", took.Round(unit), counted(restarts, "restart"), statusOf(err))
		l.say(slog.LevelInfo, "", text, append(ofAttempt(job, restarts, -1), "seconds", took.Seconds(), "restarts", restarts, "status", statusOf(err))...)
	}
}

// ofAttempt returns the attributes of a line about a start of a job, and about a rank unless it is
// -1.
func ofAttempt(job string, attempt, rank int) (attributes []any) {
	if job != "" {
		attributes = append(attributes, "job", job, "attempt", attempt)
	}
	if rank >= 0 {
		attributes = append(attributes, "rank", rank)
	}
	return attributes
}

// blamed returns the rank that made a job fail, or -1.
func blamed(err error) int {
	if ended, ok := errors.AsType[*launcher.EndedError](err); ok {
		return ended.First
	}
	return -1
}

// statusOf returns the exit status of the program that ends with an error, or nil.
func statusOf(err error) int {
	if status := interface{ ExitCode() int }(nil); errors.As(err, &status) {
		return status.ExitCode()
	} else if err != nil {
		return 1
	}
	return 0
}

// shownError is an error that its command has shown.
type shownError struct{ error }
