package ccl

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccl/goccl/transport"
)

// refusedBySome is the mismatch of a call that some ranks refused.
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
		m.addFor(v.Value, v.Why, r)
	}
	return m
}

// The reasons of the ranks that refused a call travel as the text of the failure: a line
// with a character for each of its ranks, and then a line for each reason. The character
// is firstReason for a rank with the first of them, and so on, or noReason. What does not
// fit is left out, for all ranks alike, since they return the same error.
const (
	noReason    = '-'
	firstReason = '0'
	mostReasons = 64 // so many ranks does a failure have between processes
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

// readReasons returns the reasons of n ranks, "" where there is none. Where ranks are
// processes text lies in memory that they share, and may be anything.
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

// oneLine makes a text fit to stand inside an error: valid characters that can be printed,
// on one line of at most transport.ReasonBytes bytes.
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
