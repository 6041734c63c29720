package transport

import (
	"strconv"
	"strings"
)

// RanksText returns the text of ranks, in ascending order, for a message: "rank 3",
// "ranks 0, 2", "ranks 0-7".
func RanksText(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + strconv.Itoa(ranks[0])
	}
	var b strings.Builder
	b.WriteString("ranks ")
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(ranks[i]))
		if j > i+1 {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(ranks[j]))
			i = j + 1
			continue
		}
		i++
	}
	return b.String()
}
