package topology

import (
	"fmt"
	"math"
)

// MaxCount is the largest number of ranks of a topology. Larger counts are presumably
// mistakes: the table of neighbours takes four ints per rank.
const MaxCount = 1 << 20

// ExtentsError means that count ranks cannot be arranged as requested. The fields are the
// arguments of New; the text contains the reason and arguments that would fit.
type ExtentsError struct {
	Kind  Kind
	Count int // number of ranks
	W, H  int // width and height in ranks; 0 where none was given
}

// Error returns count, w and h if they were given, the problem, and a solution.
func (e *ExtentsError) Error() string { return "topology: " + e.Reason() }

// Reason returns the text without the package.
func (e *ExtentsError) Reason() string {
	_, _, problem := extents(e.Kind, e.Count, e.W, e.H)
	given := ""
	if e.W != 0 || e.H != 0 {
		given = fmt.Sprintf(" w=%d h=%d", e.W, e.H)
	}
	return fmt.Sprintf("%s with count=%d%s: %s", e.Kind, e.Count, given, problem)
}

// extents returns the extents that New uses, or the problem with the given ones. No
// multiplication can overflow.
func extents(kind Kind, count, w, h int) (width, height int, problem string) {
	switch {
	case count < 1 || count > MaxCount:
		return 0, 0, fmt.Sprintf("count must be from 1 to %d", MaxCount)
	case kind == Ring1D && (w != 0 || h != 0):
		return 0, 0, "a ring has no extents; remove w and h, or choose torus_2d or mesh_2d_no_wrap"
	case kind == Ring1D:
		return count, 1, ""
	case w < 0 || h < 0:
		return 0, 0, "w and h must not be negative; " + advice(count)
	case w == 0 && h == 0:
		side := int(math.Sqrt(float64(count))) // exact: count is far below 2^52
		if side*side != count {
			return 0, 0, fmt.Sprintf("count %d is not a square, and w and h are not given; %s", count, advice(count))
		}
		return side, side, ""
	case w == 0:
		return 0, 0, "h is given without w; " + advice(count)
	case h == 0:
		return 0, 0, "w is given without h; " + advice(count)
	case count%w != 0 || count/w != h:
		return 0, 0, "w*h is not count; " + advice(count)
	}
	return w, h, ""
}

// advice suggests the extents for count that are closest to a square.
func advice(count int) string {
	h := int(math.Sqrt(float64(count)))
	for count%h != 0 {
		h--
	}
	return fmt.Sprintf("give both, with w*h = %d, for example w=%d h=%d", count, count/h, h)
}
