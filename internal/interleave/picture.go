//go:build interleave

package interleave

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Picture shows the last steps of a run in so many lines that are not wider than width. Each rank
// has a column. Steps that a goroutine takes without another one in between are one line.
func Picture(steps []Action, lines, width int) string {
	p := picture{width: width}
	for _, s := range steps {
		if s.Task >= 0 && !slices.Contains(p.labels, s.Label) {
			p.labels = append(p.labels, s.Label)
		}
	}
	slices.Sort(p.labels)
	turns := fold(steps)
	skipped := max(len(turns)-lines, 0)

	var b strings.Builder
	if skipped > 0 {
		fmt.Fprintf(&b, "(%d turns before)\n", skipped)
	}
	b.WriteString(p.row(header, func(label string) string { return cmp.Or(label, "(no rank)") }))
	for _, t := range turns[skipped:] {
		b.WriteString(p.draw(t))
	}
	return b.String()
}

type picture struct {
	labels []string
	width  int
}

// turn is what one task does until another one goes on.
type turn struct {
	first, last Action
	steps       int
}

func fold(steps []Action) (turns []turn) {
	for _, s := range steps {
		if n := len(turns); n > 0 && s.isTurn && turns[n-1].last.isTurn && turns[n-1].last.Task == s.Task {
			turns[n-1].last = s
			turns[n-1].steps++
			continue
		}
		turns = append(turns, turn{first: s, last: s, steps: 1})
	}
	return turns
}

// draw returns a turn: its first step, and its last one below.
func (p *picture) draw(t turn) string {
	if t.first.Task < 0 {
		return "---- " + t.first.What + "\n"
	}
	text := p.cell(t.first.Task, t.first.Label, t.first.String())
	if t.steps > 2 {
		text += p.cell(goingOn, t.first.Label, fmt.Sprintf("... %d more", t.steps-2))
	}
	if t.steps > 1 {
		text += p.cell(goingOn, t.first.Label, t.last.String())
	}
	return text
}

func (p *picture) cell(task int, label, text string) string {
	return p.row(task, func(l string) string {
		if l == label {
			return text
		}
		return ""
	})
}

// Instead of a task's number.
const (
	header  = -2
	goingOn = -1 // the task of the line before
)

// row returns a line with what text returns for each label. It begins with the number of the task.
func (p *picture) row(task int, text func(label string) string) string {
	var b strings.Builder
	if task >= 0 {
		fmt.Fprint(&b, task)
	}
	column := max((p.width-5)/max(len(p.labels), 1), 8)
	for i, label := range p.labels {
		b.WriteString(strings.Repeat(" ", max(5+i*column-utf8.RuneCountInString(b.String()), 0)))
		width := column - 1
		if task != header { // the other columns are empty
			width = p.width - 5 - i*column
		}
		b.WriteString(shorten(text(label), width))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

func shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}
