// Package reasons encodes why ranks rejected a call, as the text of the group's failure.
//
// # Model
//
// The text is one line with a character for each rank that rejected, then one line for each
// different reason. The character is firstReason plus the number of the rank's reason, or noReason.
// Reasons that do not fit are left out, for all ranks, which return the same error.
package reasons

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccl/goccl/transport"
)

const (
	noReason    = '-'
	firstReason = '0'
	mostReasons = 64 // the most ranks that a failure has between processes
)

// Write returns the text for the reasons of ranks, "" for a rank that has none.
func Write(why []string) string {
	var lines []string
	ranks := make([]byte, min(len(why), mostReasons))
	length := len(ranks)

	for i := range ranks {
		ranks[i] = noReason
		line := Line(why[i])
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

// Read returns the reasons of n ranks, "" if a rank has none. text may contain anything, because
// processes read it from shared memory.
func Read(text string, n int) []string {
	why := make([]string, n)
	lines := strings.Split(text, "\n")
	for i := range min(n, len(lines[0])) {
		if at := int(lines[0][i]) - firstReason; at >= 0 && at < len(lines)-1 {
			why[i] = Line(lines[1+at])
		}
	}
	return why
}

// Line returns text in a form that fits inside an error: printable characters on one line of
// at most transport.ReasonBytes bytes.
func Line(text string) string {
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
