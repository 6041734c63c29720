//go:build interleave

package underseeds

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/launchenv"
)

// foundError is what is wrong with a program under a seed, by the lines of the program.
type foundError struct{ *interleave.Finding }

// What users can do about a finding.
var advice = map[interleave.Kind]string{
	interleave.Standstill: "no goroutine can go on: each waits for another one",
	interleave.Race:       "a data race, which the race detector reports above: this goroutine has made the later access",
	interleave.Endless:    "the program does not end",
	interleave.Leak:       "the program has ended, and has left goroutines or timers",
	interleave.Stranger: "a goroutine that go has started calls goccl, so that no seed orders it: " +
		"start it by dist.Go; a kernel makes its calls in the goroutine that runs it",
	interleave.Blocked: "the first of these goroutines waits for what no seed orders, and keeps all others from going on: " +
		"hold no lock of package sync across a call of goccl (unlock it before, or use a channel with room for one), " +
		"make channels in the worker, and wait for nothing that comes from outside of it",
	interleave.Busy: "the first of these goroutines runs for 20 s without a call, and keeps all others from going on: " +
		"do not wait for another rank in a loop",
}

func (f *foundError) Error() string {
	text, isKnown := advice[f.Kind]
	if !isKnown {
		text = fmt.Sprintf("%s: %s", f.Kind, f.Text)
	}
	lines := f.lines()
	if len(lines) == 0 {
		lines = f.Tasks
	}
	return text + "\n\t" + strings.Join(lines, "\n\t")
}

// lines returns where the program's goroutines are, each by its innermost line of the program.
func (f *foundError) lines() (lines []string) {
	if f.Kind == interleave.Panic {
		for _, frame := range launchenv.PanicFrames([]byte(f.Stack)) {
			lines = append(lines, "at "+where(frame))
		}
		return lines
	}
	if f.Kind == interleave.Race {
		return []string{f.racer()}
	}
	if all := launchenv.ParseStacks(f.Stack); len(all) > 0 { // a Stranger
		return []string{line("a goroutine", all[0])}
	}

	var first []string
	for _, g := range launchenv.ParseStacks(f.Stacks) {
		i := slices.IndexFunc(f.Goroutines, func(t interleave.Goroutine) bool { return t.Number == int64(g.Number) })
		isTask := i >= 0
		if !isTask && (f.Kind != interleave.Leak || !strings.HasSuffix(g.State, f.Bubble)) || !slices.ContainsFunc(g.Frames, launchenv.Frame.IsOwn) {
			continue
		}

		who := "a goroutine"
		if isTask {
			who = nameOf(f.Goroutines[i].Label, g)
		}
		if isTask && f.Goroutines[i].IsNext && (f.Kind == interleave.Blocked || f.Kind == interleave.Busy) {
			first = []string{line(who, g)}
			continue
		}
		lines = append(lines, line(who, g))
	}

	for i, g := range f.Goroutines {
		if g.Number == 0 { // a timer
			lines = append(lines, f.Tasks[i])
		}
	}
	slices.Sort(lines)
	return append(first, slices.Compact(lines)...)
}

// racer says who has made the later access of a race, and where it is. One that has come to its end
// is in no line of the program.
func (f *foundError) racer() string {
	for _, g := range launchenv.ParseStacks(f.Stacks) {
		if int64(g.Number) == f.Racer.Number && slices.ContainsFunc(g.Frames, launchenv.Frame.IsOwn) {
			return line(nameOf(f.Racer.Label, g), g)
		}
	}
	return cmp.Or(f.Racer.Label, "a goroutine")
}

// nameOf names a goroutine by the label of its rank.
func nameOf(label string, g launchenv.Goroutine) string {
	switch {
	case label == "":
		return "a goroutine"
	case !g.IsWorker():
		return "a goroutine of " + label
	}
	return label
}

// line says in which call of which line a goroutine is.
func line(who string, g launchenv.Goroutine) string {
	at := slices.IndexFunc(g.Frames, launchenv.Frame.IsOwn)
	if at < 0 {
		return who
	}
	call, _, _ := strings.Cut(g.State, ",")
	call = strings.TrimSuffix(call, " (durable)")

	if at > 0 {
		call = strings.ReplaceAll(path.Base(g.Frames[at-1].Function), "[...]", "")
	}

	text := fmt.Sprintf("%s is in %s at %s", who, call, where(g.Frames[at]))
	if c := g.Creator; c != nil && c.IsOwn() {
		text += ", started at " + where(*c)
	}
	return text
}

// where names a line as the errors of calls do.
func where(f launchenv.Frame) string {
	return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(filepath.ToSlash(f.File))), path.Base(filepath.ToSlash(f.File)), f.Line)
}
