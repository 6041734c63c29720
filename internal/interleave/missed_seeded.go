//go:build interleave

package interleave

import (
	"fmt"
	"slices"
)

// What a task that waits is taken to have read for that, and how much of it is shown.
const (
	lookBack = 16 // words
	nearby   = 12 // calls between the wait and the call that it has in common with the read
	showMost = 2
)

// missed is what another task has written to a word after one that waits has read it last.
type missed struct {
	read, write *moment
	calls       int // as in nearby
}

// findMissed returns what a task that waits has missed, first what it has read close to its wait.
func (r *trace) findMissed(t *task) (all []missed) {
	if r == nil || r.isProgram != nil || t.until == nil || t.isKilled || t.label == "" {
		return nil
	}

	var words []any
	for i := r.end - 1; i >= 0 && len(words) < lookBack; i-- {
		read := &r.moments[i]
		if read.of != t || !read.isRead || slices.Contains(words, read.word) {
			continue
		}
		words = append(words, read.word)
		calls := t.at.distance(&read.at)
		if write := r.writeAfter(i); write != nil && calls <= nearby {
			all = append(all, missed{read, write, calls})
		}
	}

	slices.SortStableFunc(all, func(a, b missed) int { return a.calls - b.calls })
	return all[:min(len(all), showMost)]
}

// writeAfter returns the last write of another task to the word that was read at moment i.
func (r *trace) writeAfter(i int) *moment {
	read := &r.moments[i]
	for j := r.end - 1; j > i; j-- {
		if w := &r.moments[j]; w.isWritten && w.of != read.of && w.word == read.word {
			return w
		}
	}
	return nil
}

// distance returns how many calls lie between where c is and the call from which o was made too.
func (c *stack) distance(o *stack) int {
	for i, caller := range c.callers[:c.depth] {
		if slices.Contains(o.callers[:o.depth], caller) {
			return i
		}
	}
	return c.depth
}

func (r *trace) describe(m missed) string {
	return fmt.Sprintf("has not seen what %s has written at %s; its last look is at %s", m.write.name(), r.lineOf(m.write), r.lineOf(m.read))
}

// name names the task as it was named then.
func (m *moment) name() string { return (&task{number: m.of.number, label: m.label}).String() }

// lineOf returns the line of a moment.
func (r *trace) lineOf(m *moment) string {
	_, file, line := m.at.find(nil)
	return fmt.Sprintf("%s `%s`", position(file, line), r.read(file, line))
}
