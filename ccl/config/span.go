package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/text"
)

// MaxRanks is the largest world size. Larger ones are rejected as mistakes.
const MaxRanks = 1 << 16

// maxNodes is the largest number of nodes. A group with two levels has more ranks than nodes.
const maxNodes = MaxRanks - 1

// parseRanks parses a number of ranks.
func parseRanks(s string) (int, error) { return parseNumber(s, "ranks", MaxRanks) }

// parseNodes parses a number of nodes.
func parseNodes(s string) (int, error) { return parseNumber(s, "nodes", maxNodes) }

func parseNumber(s, of string, most int) (int, error) {
	n, err := text.Whole(s)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return 0, fmt.Errorf("%s is not a number of %s; write it like 4", text.Quote(s), of)
	case n < 1 || n > int64(most):
		return 0, fmt.Errorf("%s is out of range: from 1 to %d %s are allowed", text.Quote(s), most, of)
	}
	return int(n), nil
}

func parseByteSize(s string) (b ccl.ByteSize, err error) {
	err = b.UnmarshalText([]byte(s))
	return b, err
}

// span is a range of sizes, ranks or nodes, both ends included.
type span[T int | ccl.ByteSize] struct {
	min, max T
	open     bool // no upper bound
}

func (s span[T]) contains(v T) bool { return s.min <= v && (s.open || v <= s.max) }

// within reports whether v is in one of the ranges.
func within[T int | ccl.ByteSize](v T, spans []span[T]) bool {
	return slices.ContainsFunc(spans, func(s span[T]) bool { return s.contains(v) })
}

// String returns the range as parseSpan reads it.
func (s span[T]) String() string {
	switch {
	case s.open:
		return fmt.Sprintf("%v-", s.min)
	case s.min == s.max:
		return fmt.Sprint(s.min)
	}
	return fmt.Sprintf("%v-%v", s.min, s.max)
}

// parseSpan parses "4KiB", "1KiB-16MiB", "16MiB-" and "-4KiB", or the same with ranks or nodes.
// parse parses a single value, of which least is the smallest.
func parseSpan[T int | ccl.ByteSize](s string, least T, parse func(string) (T, error)) (span[T], error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	r := span[T]{min: least, open: last == ""}
	if first == "" && last == "" {
		return r, fmt.Errorf("%s is an empty range; write a value, first-last, first- or -last", text.Quote(s))
	}

	var err error
	if first != "" {
		if r.min, err = parse(first); err != nil {
			return r, cmp.Or(misspeltSpan(s, least, parse), err)
		}
	}

	if last != "" {
		if r.max, err = parse(last); err != nil {
			return r, cmp.Or(misspeltSpan(s, least, parse), err)
		}
	}
	if !r.open && r.min > r.max {
		return r, fmt.Errorf("%s is a reversed range: %v is more than %v", text.Quote(s), r.min, r.max)
	}
	return r, nil
}

// dashes are what else people write between the ends of a range.
var dashes = strings.NewReplacer("...", "-", "..", "-", "–", "-", "—", "-", "to", "-", ":", "-", "~", "-")

// misspeltSpan returns an error that says how to write a range in another notation, such as
// ">1MiB" or "1MiB..4MiB", nil if s is none.
func misspeltSpan[T int | ccl.ByteSize](s string, least T, parse func(string) (T, error)) error {
	compact := strings.Join(strings.Fields(s), "")
	for _, operator := range []string{">=", "=>", "<=", "=<", ">", "<", "==", "="} {
		limit, found := strings.CutPrefix(compact, operator)
		if !found {
			continue
		}

		v, err := parse(limit)
		if err != nil {
			return nil
		}

		switch {
		case operator == ">":
			return rangeError(s, fmt.Sprintf(`"%v-" for %[1]v and more, "%v-" for more than %[1]v`, v, v+1))
		case operator == "<" && v > least:
			return rangeError(s, fmt.Sprintf(`"-%v" for %[1]v and less, "-%v" for less than %[1]v`, v, v-1))
		case strings.Contains(operator, ">"):
			return rangeError(s, fmt.Sprintf(`"%v-" for %[1]v and more`, v))
		case strings.Contains(operator, "<"):
			return rangeError(s, fmt.Sprintf(`"-%v" for %[1]v and less`, v))
		}
		return rangeError(s, fmt.Sprint(v))
	}

	if least, open := strings.CutSuffix(compact, "+"); open {
		compact = least + "-"
	}
	if dashed := dashes.Replace(compact); dashed != s && strings.Count(dashed, "-") == 1 {
		if r, err := parseSpan(dashed, least, parse); err == nil {
			return rangeError(s, strconv.Quote(r.String()))
		}
	}
	return nil
}

func rangeError(s, write string) error {
	return fmt.Errorf("%s is not a range: write %s", text.Quote(s), write)
}

// written returns a value, or a list of values, as ccl.yaml has it.
func written[T any](values []T) string {
	if len(values) == 1 {
		return fmt.Sprint(values[0])
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
