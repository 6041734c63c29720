package ccl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccl/goccl/transport"
)

// differing returns the error of a call that ranks have entered with different fingerprints. All
// ranks read the same fingerprints and return the same error. If the fingerprints have only a
// hash of the field that differs, all ranks exchange its text in one more synchronisation.
func (c *Communicator) differing(err *transport.MismatchError) error {
	prints := make([]fingerprint, c.size)
	for r := range prints {
		prints[r] = fingerprintOf(c.ep.Fingerprint(r))
	}
	m, isHash := c.mismatch(prints)
	if isHash {
		seq := c.seq
		texts, err := c.exchange(c.entry.Ctx, []byte(c.hashedText(m.Field)))
		c.seq = seq // of the call that the error is about; the group makes no other
		switch {
		case errors.Is(err, transport.ErrFailed):
			return err
		case err == nil:
			if said := disagreement(m.Field, m.said(texts)); said != nil {
				m = said
			}
		}
	}
	c.differ.Store(m)
	return m
}

// hashedText returns the text of the field that this rank's fingerprint has a hash of.
func (c *Communicator) hashedText(field string) string {
	r := &c.call.request
	if field == "op" {
		return r.op.String()
	}
	lengths := r.counts
	for _, t := range c.coalesced {
		lengths = append(lengths, t.Len())
	}
	switch {
	case lengths != nil:
	case r.each > 0:
		lengths = slices.Repeat([]int{r.each}, c.size)
	default:
		lengths = []int{r.count}
	}
	return strings.Trim(fmt.Sprint(lengths), "[]")
}

// said returns the ranks' values of the field, from their texts. Of long lists of numbers it
// returns the first ones that differ.
func (e *MismatchError) said(texts [][]byte) []string {
	said, long := make([]string, len(texts)), false
	lists := make([][]string, len(texts))
	shortest := math.MaxInt
	for r, text := range texts {
		said[r] = string(text)
		if e.Field == "op" {
			continue
		}
		lists[r] = strings.Fields(said[r])
		said[r] = "[" + said[r] + "]"
		long = long || len(text) > 80
		shortest = min(shortest, len(lists[r]))
	}
	if !long {
		return said
	}
	at := 0
	for at < shortest && !slices.ContainsFunc(lists, func(l []string) bool { return l[at] != lists[0][at] }) {
		at++
	}
	for r, l := range lists {
		said[r] = fmt.Sprintf("only %d numbers", len(l))
		if at < len(l) {
			said[r] = fmt.Sprintf("%s at index %d of %d", l[at], at, len(l))
		}
	}
	return said
}

// mismatch returns the first field in which fingerprints differ, and whether they have only a
// hash of it.
func (c *Communicator) mismatch(prints []fingerprint) (m *MismatchError, isHash bool) {
	for _, field := range []struct {
		name string
		text func(f fingerprint) string
	}{
		{"collective", func(f fingerprint) string { return f.coll.String() }},
		{"dtype", func(f fingerprint) string { return f.dtype.String() }},
		{"op", func(f fingerprint) string {
			if f.op < hashed {
				return Op(f.op).String()
			}
			isHash = true
			return fmt.Sprintf("one with hash %08x", f.op)
		}},
		{"count", func(f fingerprint) string { return fmt.Sprint(f.count) }},
		{"root", func(f fingerprint) string { return fmt.Sprint(f.root) }},
		{lengthsField(prints[0].coll), func(f fingerprint) string {
			isHash = true
			return fmt.Sprintf("those with hash %08x", uint32(f.counts))
		}},
		{"algorithm", func(f fingerprint) string { return c.entryName(f.entry) }},
	} {
		texts := make([]string, c.size)
		for r, f := range prints {
			texts[r] = field.text(f)
		}
		if m := disagreement(field.name, texts); m != nil {
			return m, isHash
		}
		isHash = false
	}
	return &MismatchError{Field: "fingerprint"}, false
}

// disagreement groups the ranks by their values, in the order in which the values first appear.
// It returns nil if all values are equal.
func disagreement(field string, texts []string) *MismatchError {
	m := &MismatchError{Field: field}
	for r, text := range texts {
		m.add(text, "", r)
	}
	if len(m.Values) < 2 {
		return nil
	}
	return m
}

// add adds a rank that brought value, or that refused, for the reason why.
func (e *MismatchError) add(value, why string, rank int) {
	i := slices.IndexFunc(e.Values, func(v MismatchValue) bool { return v.Value == value && v.Why == why })
	if i < 0 {
		i = len(e.Values)
		e.Values = append(e.Values, MismatchValue{Value: value, Why: why})
	}
	e.Values[i].Ranks = append(e.Values[i].Ranks, rank)
}

// lengthsField returns the name of the field that the fifth word is a hash of.
func lengthsField(coll Collective) string {
	if coll == collNewGroup {
		return "ranks"
	}
	return "counts"
}

// sameMemory returns the mismatch of a call that writes memory which several ranks brought.
func sameMemory(ranks []int, size int) *MismatchError {
	m := &MismatchError{Field: buffersField}
	for r := range size {
		value := "memory of its own"
		if slices.Contains(ranks, r) {
			value = "the same memory"
		}
		m.add(value, "", r)
	}
	return m
}

// refusedBySome returns the mismatch of a call that some ranks refused.
func refusedBySome(f *transport.Failure, size int) *MismatchError {
	values := make([]MismatchValue, size)
	for r := range values {
		values[r].Value = "accepted"
	}
	for i, why := range readReasons(f.Text, len(f.Ranks)) {
		values[f.Ranks[i]] = MismatchValue{Value: "refused", Why: why}
	}
	for _, r := range f.Missing {
		values[r] = MismatchValue{Value: "not there yet"}
	}
	m := &MismatchError{Field: "arguments"}
	for r, v := range values {
		m.add(v.Value, v.Why, r)
	}
	return m
}

// The reasons of the ranks that refused a call travel as the text of the failure: one line with a
// character for each of these ranks, then one line for each different reason. The character is
// firstReason plus the number of the rank's reason, or noReason. Reasons that do not fit are left
// out, for all ranks, which return the same error.
const (
	noReason    = '-'
	firstReason = '0'
	mostReasons = 64 // the most ranks that a failure has between processes
)

// writeReasons returns the text for the reasons of ranks.
func writeReasons(why []string) string {
	var lines []string
	ranks := make([]byte, min(len(why), mostReasons))
	length := len(ranks)
	for i := range ranks {
		ranks[i] = noReason
		line := oneLine(why[i])
		if line == "" {
			continue
		}
		at := slices.Index(lines, line)
		if at < 0 {
			if length+1+len(line) > transport.TextBytes {
				continue
			}
			at = len(lines)
			lines = append(lines, line)
			length += 1 + len(line)
		}
		ranks[i] = byte(firstReason + at)
	}
	return strings.Join(append([]string{string(ranks)}, lines...), "\n")
}

// readReasons returns the reasons of n ranks, "" if a rank has none. Where ranks are processes
// text comes from shared memory and may contain anything.
func readReasons(text string, n int) []string {
	why := make([]string, n)
	lines := strings.Split(text, "\n")
	for i := range min(n, len(lines[0])) {
		if at := int(lines[0][i]) - firstReason; at >= 0 && at < len(lines)-1 {
			why[i] = oneLine(lines[1+at])
		}
	}
	return why
}

// oneLine returns text in a form that fits inside an error: printable characters on one line of
// at most transport.ReasonBytes bytes.
func oneLine(text string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, string(utf8.RuneError)), func(r rune) bool {
		return r == ' ' || !unicode.IsPrint(r)
	})
	text = strings.Join(words, " ")
	if len(text) <= transport.ReasonBytes {
		return text
	}
	const more = "..."
	n := transport.ReasonBytes - len(more)
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + more
}
