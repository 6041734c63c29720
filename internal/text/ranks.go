package text

import (
	"fmt"
	"strings"
)

// Ranks formats ascending ranks as "rank 3", "ranks 0, 1" or "ranks 0-2, 5".
func Ranks(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var runs []string
	for i := 0; i < len(ranks); {
		first := i
		for i++; i < len(ranks) && ranks[i] == ranks[i-1]+1; i++ {
		}

		switch i - first {
		case 1:
			runs = append(runs, fmt.Sprint(ranks[first]))
		case 2:
			runs = append(runs, fmt.Sprintf("%d, %d", ranks[first], ranks[i-1]))
		default:
			runs = append(runs, fmt.Sprintf("%d-%d", ranks[first], ranks[i-1]))
		}
	}
	return "ranks " + strings.Join(runs, ", ")
}
