package measure

import (
	"fmt"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// Size is a length in bytes in the syntax of flags and sweep files: 4, 1K, 64KiB, 256M.
// K, M and G are powers of two, as in nccl-tests: 1K is 1KiB.
type Size int

// UnmarshalText parses a size of at least one byte.
func (s *Size) UnmarshalText(text []byte) error {
	written := string(text)
	if n := len(written); n > 0 && strings.ContainsAny(written[n-1:], "kKmMgG") {
		written = written[:n-1] + strings.ToUpper(written[n-1:]) + "iB"
	}
	var b ccl.ByteSize
	if err := b.UnmarshalText([]byte(written)); err != nil {
		return fmt.Errorf("%q is not a size in bytes; write it like 4, 1K, 64KiB or 256M", text)
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
