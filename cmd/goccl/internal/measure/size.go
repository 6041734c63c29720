package measure

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// Size is the length of a call in flags and sweep files: a ccl.ByteSize of at least one byte.
type Size int

// UnmarshalText parses a size of at least one byte.
func (s *Size) UnmarshalText(text []byte) error {
	var b ccl.ByteSize
	if err := b.UnmarshalText(text); err != nil {
		return err
	}
	if b == 0 {
		return fmt.Errorf("%q: a call has at least one byte", text)
	}
	*s = Size(b)
	return nil
}

// Sizes returns begin, begin*factor, begin*factor*factor and so on, up to end.
func Sizes(begin, end Size, factor int) (sizes []int) {
	for b := begin; b <= end; b *= Size(factor) {
		sizes = append(sizes, int(b))
		if b > end/Size(factor) {
			break // the next one could overflow
		}
	}
	return sizes
}
