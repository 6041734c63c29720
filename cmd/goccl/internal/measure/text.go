package measure

import (
	"math"
	"strconv"
)

// Digits writes a positive number with so many digits that mean something, but not
// more than four after the point; 0 is a number that there is not: "-".
func Digits(x float64, significant int) string {
	if x == 0 {
		return "-"
	}
	decimals := significant - 1 - int(math.Floor(math.Log10(x)))
	return strconv.FormatFloat(x, 'f', min(max(0, decimals), 4), 64)
}

// Multiple writes a ratio; 0 is one that there is not.
func Multiple(x float64) string {
	if x == 0 {
		return "-"
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}
