// Package bytesize reads and writes numbers of bytes with units.
//
// # Model
//
// A [Size] is a whole number of bytes. Units are powers of 1024, and a text that may mean another
// number is an error that says what to write.
package bytesize

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/text"
)

// maxSize is the largest size in bytes. A sum over 65,536 ranks still fits an int64.
const maxSize = 1 << 40

// Size is a number of bytes, which may have a unit, in ccl.yaml, in flags and in sweep files alike:
// 4096, 64KiB or 64K, 1MiB or 1M, 2GiB or 2G, up to 1024GiB, in either case.
type Size int64

// units are in descending order, as String tries them.
var units = []struct {
	name string
	size Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String returns the size in the largest unit that divides it: "64KiB", "4097".
func (b Size) String() string {
	for _, u := range units {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalText returns the same text as String.
func (b Size) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText parses a size of at least 0: "64KiB", "64K", "4096".
func (b *Size) UnmarshalText(size []byte) error {
	s := string(size)
	digits, unit := withoutUnit(s)
	n, err := text.Whole(digits)
	switch {
	case errors.Is(err, strconv.ErrSyntax) || n < 0:
		return fmt.Errorf("%s is not a size in bytes; %s", text.Quote(s), meantSize(s))
	case err != nil || n > maxSize/int64(unit):
		return fmt.Errorf("%s is out of range: at most %s is allowed", text.Quote(s), Size(maxSize))
	}
	*b = Size(n) * unit
	return nil
}

// withoutUnit returns the digits of a size, and its unit.
func withoutUnit(s string) (digits string, unit Size) {
	for _, u := range units {
		for _, name := range []string{u.name, u.name[:1]} {
			if n := len(s) - len(name); n >= 0 && strings.EqualFold(s[n:], name) {
				return s[:n], u.size
			}
		}
	}
	return s, 1
}

// meantSize says how to write what is no size.
func meantSize(s string) string {
	compact := strings.Join(strings.Fields(s), "")
	digits, unit := withoutUnit(compact)
	if v, err := strconv.ParseFloat(digits, 64); err == nil && v > 0 && v <= maxSize/float64(unit) {
		if size := Size(v * float64(unit)); float64(size) == v*float64(unit) {
			return fmt.Sprintf("write %v", size)
		}
	}

	if n := len(compact) - 1; n > 0 && strings.EqualFold(compact[n:], "B") {
		digits, unit := withoutUnit(compact[:n])
		size := Size(0)
		if err := size.UnmarshalText([]byte(compact[:n])); err == nil && unit == 1 {
			return "write " + digits
		} else if err == nil {
			return fmt.Sprintf("%s can mean powers of 1000 or 1024: write %v for 1024", compact[len(digits):], size)
		}
	}
	return "write it like 4096, 64KiB, 1MiB or 2GiB; 64K, 1M and 2G are the same"
}
