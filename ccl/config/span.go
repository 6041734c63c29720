package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/text"
)

// MaxRanks is the largest world size. Larger ones are rejected as mistakes.
const MaxRanks = 1 << 16

// parseRanks parses a number of ranks.
func parseRanks(s string) (int, error) {
	n, err := text.Whole(s)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return 0, fmt.Errorf("%s is not a number of ranks", text.Quote(s))
	case n < 1 || n > MaxRanks:
		return 0, fmt.Errorf("%s is out of range: from 1 to %d ranks are allowed", text.Quote(s), MaxRanks)
	}
	return int(n), nil
}

func parseByteSize(s string) (b ccl.ByteSize, err error) {
	err = b.UnmarshalText([]byte(s))
	return b, err
}

// span is a range of sizes or ranks, both ends included.
type span[T int | ccl.ByteSize] struct {
	min, max T
	open     bool // no upper bound
}

func (s span[T]) contains(v T) bool { return s.min <= v && (s.open || v <= s.max) }

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

// parseSpan parses "4KiB", "1KiB-16MiB", "16MiB-" and "-4KiB", or the same with ranks.
// parse parses a single value.
func parseSpan[T int | ccl.ByteSize](s string, parse func(string) (T, error)) (span[T], error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	r := span[T]{open: last == ""}
	if first == "" && last == "" {
		return r, fmt.Errorf("%s is an empty range; write a value, first-last, first- or -last", text.Quote(s))
	}
	var err error
	if first != "" {
		if r.min, err = parse(first); err != nil {
			return r, err
		}
	}
	if last != "" {
		if r.max, err = parse(last); err != nil {
			return r, err
		}
	}
	if !r.open && r.min > r.max {
		return r, fmt.Errorf("%s is a reversed range: %v is more than %v", text.Quote(s), r.min, r.max)
	}
	return r, nil
}
