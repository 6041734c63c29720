package cores

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse returns the numbers of a list of Linux, such as 0-3,8; none if it is invalid.
func Parse(list string) (numbers []int) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}

		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || b < a {
			return nil
		}
		for ; a <= b; a++ {
			numbers = append(numbers, a)
		}
	}
	return numbers
}

// Format returns ascending numbers as a list of Linux.
func Format(numbers []int) string {
	var runs []string
	for i := 0; i < len(numbers); {
		first := numbers[i]
		for i++; i < len(numbers) && numbers[i] == numbers[i-1]+1; i++ {
		}
		run := strconv.Itoa(first)
		if last := numbers[i-1]; last > first {
			run = fmt.Sprintf("%d-%d", first, last)
		}
		runs = append(runs, run)
	}
	return strings.Join(runs, ",")
}
