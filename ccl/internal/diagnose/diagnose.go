// Package diagnose finds in what ranks differ whose fingerprints differ.
//
// # Model
//
// A fingerprint has only a hash of a group's settings, of the lengths of blocks and of users'
// operations. If ranks differ in one, all ranks exchange its text, so that all find the same
// difference.
package diagnose

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/transport"
)

// Exchange returns the texts of all ranks; e brings this rank's as its Send. It is the only
// exchange of data that does not need the ranks to agree on a call.
func Exchange(ep transport.Endpoint, e *transport.Arrival) ([]string, error) {
	if _, err := ep.Enter(e); err != nil {
		return nil, err
	}

	texts := make([]string, ep.Size())
	if memory := ep.Memory(); memory != nil {
		for r := range texts {
			send, _ := memory.Buffers(r)
			texts[r] = string(send)
		}
	} else if err := exchangeStaged(ep.Staging(), e.Send, texts); err != nil {
		return nil, err
	}

	return texts, ep.Complete()
}

// longestText is longer than the text of any settings.
const longestText = 16 << 20

// exchangeStaged exchanges first the lengths, then the texts, piece by piece.
func exchangeStaged(s transport.Staging, text []byte, texts []string) error {
	s.PutInput(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), 0, 0)
	if err := s.Flip(); err != nil {
		return err
	}

	lengths, longest := make([]int, len(texts)), 0
	for r := range lengths {
		lengths[r] = int(binary.LittleEndian.Uint64(s.Input(r, 8)))
		longest = max(longest, lengths[r])
		if lengths[r] < 0 || lengths[r] > longestText {
			return &transport.ProtocolError{Peer: r, Text: fmt.Sprintf("it shows settings of %d bytes", lengths[r])}
		}
	}

	step := s.PieceBytes()
	for lo := 0; lo < longest; lo += step {
		s.PutInput(text[min(lo, len(text)):min(lo+step, len(text))], 0, 0)
		if err := s.Flip(); err != nil {
			return err
		}
		for r := range texts {
			n := min(lo+step, lengths[r]) - min(lo, lengths[r])
			texts[r] += string(s.Input(r, n))
		}
	}
	return nil
}

// Setting returns the first key, in alphabetical order, for which the texts, lines "key=value",
// have different values, and these. It returns "" if the texts agree.
func Setting(texts []string) (key string, values []string) {
	var keys []string
	settings := make([]map[string]string, len(texts))
	for r, text := range texts {
		settings[r] = make(map[string]string)
		for line := range strings.Lines(text) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			settings[r][key] = value
			keys = append(keys, key)
		}
	}

	slices.Sort(keys)
	values = make([]string, len(texts))

	for _, key := range slices.Compact(keys) {
		for r := range values {
			values[r] = "unset"
			if v, ok := settings[r][key]; ok {
				values[r] = v
			}
		}

		if slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
			return key, values
		}
	}
	return "", nil
}

// Shorten replaces lists such as "[1 2 3]", if one is long, by their first elements that differ.
func Shorten(texts []string) {
	lists, shortest := make([][]string, len(texts)), math.MaxInt
	long := false
	for r, text := range texts {
		lists[r] = strings.Fields(strings.Trim(text, "[]"))
		shortest = min(shortest, len(lists[r]))
		long = long || len(text) > 82
	}

	if !long {
		return
	}
	at := 0
	for at < shortest && !slices.ContainsFunc(lists, func(l []string) bool { return l[at] != lists[0][at] }) {
		at++
	}

	for r, l := range lists {
		texts[r] = fmt.Sprintf("only %d numbers", len(l))
		if at < len(l) {
			texts[r] = fmt.Sprintf("%s at index %d of %d", l[at], at, len(l))
		}
	}
}
