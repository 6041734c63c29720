package measure

import (
	"math"
	"strconv"
)

// Digits formats a positive number with that many significant digits, at most four after
// the point; 0 is missing: "-".
func Digits(x float64, significant int) string {
	if x == 0 {
		return "-"
	}
	decimals := significant - 1 - int(math.Floor(math.Log10(x)))
	return strconv.FormatFloat(x, 'f', min(max(0, decimals), 4), 64)
}

// Multiple formats a ratio; 0 is missing.
func Multiple(x float64) string {
	if x == 0 {
		return "-"
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}
