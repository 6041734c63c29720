package chart

import (
	"fmt"
	"math"
	"strconv"

	"github.com/goccl/goccl/ccl"
)

// lengthTicks returns the ticks of an axis of exponents of powers of two, at most eight with names.
func lengthTicks(low, high float64) (ticks []tick) {
	first, last := int(math.Ceil(low)), int(math.Floor(high))
	step := 2
	for (last-first)/step >= 8 {
		step += 2
	}

	for power := first; power <= last; power++ {
		t := tick{at: float64(power)}
		if power%step == 0 {
			t.name = ccl.ByteSize(math.Exp2(t.at)).String()
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// timeTicks returns the ticks of an axis of base-10 exponents of microseconds. The decades have
// names, and 2 and 5 if there are few of them.
func timeTicks(low, high float64) (ticks []tick) {
	few := high-low < 3
	for decade := math.Floor(low); decade <= high; decade++ {
		for digit := 1.0; digit < 10; digit++ {
			t := tick{at: decade + math.Log10(digit)}
			if digit == 1 || few && (digit == 2 || digit == 5) {
				t.name = timeText(digit * math.Pow(10, decade))
			}
			if low <= t.at && t.at <= high {
				ticks = append(ticks, t)
			}
		}
	}

	return ticks
}

// plainTicks returns the ticks of a linear axis from 0, at most six.
func plainTicks(_, high float64) (ticks []tick) {
	step := math.Pow(10, math.Floor(math.Log10(high/5)))
	for _, larger := range []float64{2, 2.5, 2} { // 2, 5, 10
		if high > 5*step {
			step *= larger
		}
	}
	for i := 0.0; i*step <= high; i++ {
		ticks = append(ticks, tick{i * step, number(i * step)})
	}
	return ticks
}

// timeText writes microseconds in the shortest unit.
func timeText(us float64) string {
	for _, u := range []struct {
		name string
		us   float64
	}{{"s", 1e6}, {"ms", 1e3}, {"µs", 1}} {
		if us >= u.us*0.999 {
			return number(us/u.us) + " " + u.name
		}
	}
	return fmt.Sprintf("%s ns", number(us*1e3))
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
