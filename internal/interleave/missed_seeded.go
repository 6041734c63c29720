//go:build interleave

package interleave

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
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
	distance    int // calls, as in nearby; of a lock that many more
}

// findMissed returns what a task that waits has missed, first words, and what it has read
// close to its wait.
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
		write, distance := r.writeAfter(i), t.at.distance(&read.at)
		if write == nil || distance > nearby {
			continue
		}

		if _, isLock := read.word.(lock); isLock {
			distance += nearby + 1
		}
		all = append(all, missed{read, write, distance})
	}

	slices.SortStableFunc(all, func(a, b missed) int { return a.distance - b.distance })
	return all[:min(len(all), showMost)]
}

// writeAfter returns the last write of another task to the word that was read at moment i.
func (r *trace) writeAfter(i int) *moment {
	read := &r.moments[i]
	addresses := addressesOf(read.word)
	for j := r.end - 1; j > i; j-- {
		if w := &r.moments[j]; w.isWritten && w.of != read.of && slices.Contains(addresses, reflect.ValueOf(w.word).Pointer()) {
			return w
		}
	}
	return nil
}

// addressesOf returns all addresses of a word: simulated processes map the same file. Where
// /proc/self/maps is not there it is one.
func addressesOf(word any) []uintptr {
	at, all := reflect.ValueOf(word).Pointer(), readMappings()
	addresses := []uintptr{at}
	of := slices.IndexFunc(all, func(m mapping) bool { return m.from <= at && at < m.to })
	if of < 0 {
		return addresses
	}

	offset := at - all[of].from + all[of].offset
	for _, m := range all {
		if there := m.from + offset - m.offset; m.file == all[of].file && m.from <= there && there < m.to {
			addresses = append(addresses, there)
		}
	}
	return addresses
}

// mapping is memory of a file.
type mapping struct {
	from, to, offset uintptr
	file             uint64 // its number
}

func readMappings() (all []mapping) {
	text, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(text)) {
		var m mapping
		var access, device string
		if n, _ := fmt.Sscanf(line, "%x-%x %s %x %s %d", &m.from, &m.to, &access, &m.offset, &device, &m.file); n == 6 && m.file != 0 {
			all = append(all, m)
		}
	}
	return all
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
