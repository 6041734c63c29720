package ccl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/text"
)

// maxByteSize is the largest size in bytes. A sum over 65,536 ranks still fits an int64.
const maxByteSize = 1 << 40

// ByteSize is a number of bytes. In ccl.yaml it may have a unit: 64KiB, 1MiB, 2GiB, or 4096,
// up to 1024GiB. Use it for fields of an algorithm's parameters.
type ByteSize int64

// units are in descending order, as String tries them.
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

// MarshalText returns the same text as String.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText parses a size of at least 0 as ccl.yaml writes it: "64KiB", "4096".
func (b *ByteSize) UnmarshalText(size []byte) error {
	s := string(size)
	digits, unit := s, ByteSize(1)
	for _, u := range units {
		if before, found := strings.CutSuffix(s, u.name); found {
			digits, unit = before, u.size
		}
	}
	n, err := text.Whole(digits)
	switch {
	case errors.Is(err, strconv.ErrSyntax) || n < 0:
		return fmt.Errorf("%s is not a size in bytes; write it like 64KiB, 1MiB, 2GiB or 4096", text.Quote(s))
	case err != nil || n > maxByteSize/int64(unit):
		return fmt.Errorf("%s is out of range: at most %s is allowed", text.Quote(s), ByteSize(maxByteSize))
	}
	*b = ByteSize(n) * unit
	return nil
}
