package ccl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxRanks is the largest world size; larger ones are taken for mistakes.
const MaxRanks = 1 << 16

// maxByteSize is the largest size in bytes. It leaves room to multiply by MaxRanks.
const maxByteSize = 1 << 40

// parseWhole reads a whole number in its only spelling: decimal digits without a
// leading zero, after a minus sign if it is negative. The error is
// strconv.ErrSyntax or strconv.ErrRange; with the latter, n is the nearest.
func parseWhole(s string) (n int64, err error) {
	n, err = strconv.ParseInt(s, 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return n, strconv.ErrRange
	}
	if err != nil || strconv.FormatInt(n, 10) != s {
		return 0, strconv.ErrSyntax
	}
	return n, nil
}

// parseRanks reads a number of ranks.
func parseRanks(s string) (int, error) {
	n, err := parseWhole(s)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return 0, fmt.Errorf("%s is not a number of ranks", quote(s))
	case n < 1 || n > MaxRanks:
		return 0, fmt.Errorf("%s is out of range: from 1 to %d ranks are allowed", quote(s), MaxRanks)
	}
	return int(n), nil
}

// ByteSize is a number of bytes, which ccl.yaml may write with a unit: 64KiB,
// 1MiB, 2GiB, or 4096, up to 1024GiB. It is a type for fields of an algorithm's
// parameters.
type ByteSize int64

// units stand from the largest to the smallest, as String tries them.
var units = []struct {
	name string
	size ByteSize
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String returns the size in the largest unit that divides it: "64KiB", "4097".
func (b ByteSize) String() string {
	for _, u := range units {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// parseByteSize reads a size as String writes it, from 0 on.
func parseByteSize(s string) (ByteSize, error) {
	digits, unit := s, ByteSize(1)
	for _, u := range units {
		if before, found := strings.CutSuffix(s, u.name); found {
			digits, unit = before, u.size
		}
	}
	n, err := parseWhole(digits)
	switch {
	case errors.Is(err, strconv.ErrSyntax) || n < 0:
		return 0, fmt.Errorf("%s is not a size in bytes; write it like 64KiB, 1MiB, 2GiB or 4096", quote(s))
	case err != nil || n > maxByteSize/int64(unit):
		return 0, fmt.Errorf("%s is out of range: at most %s is allowed", quote(s), ByteSize(maxByteSize))
	}
	return ByteSize(n) * unit, nil
}

// span is a range of sizes or ranks, both ends included.
type span[T int | ByteSize] struct {
	min, max T
	open     bool // there is no max
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

// parseSpan reads "4KiB", "1KiB-16MiB", "16MiB-" and "-4KiB", or the like in
// ranks, by the reader of a single value.
func parseSpan[T int | ByteSize](s string, parse func(string) (T, error)) (span[T], error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	r := span[T]{open: last == ""}
	if first == "" && last == "" {
		return r, fmt.Errorf("%s is an empty range; write a value, first-last, first- or -last", quote(s))
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
		return r, fmt.Errorf("%s is a reversed range: %v is more than %v", quote(s), r.min, r.max)
	}
	return r, nil
}
