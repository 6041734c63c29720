package chart

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"

	"github.com/goccl/goccl/ccl"
)

// lengths is an axis of exponents of powers of two.
type lengths struct{}

// Ticks returns at most eight names.
func (lengths) Ticks(low, high float64) (ticks []plot.Tick) {
	first, last := int(math.Ceil(low)), int(math.Floor(high))
	step := 2
	for (last-first)/step >= 8 {
		step += 2
	}

	for power := first; power <= last; power++ {
		tick := plot.Tick{Value: float64(power)}
		if power%step == 0 {
			tick.Label = ccl.ByteSize(math.Exp2(tick.Value)).String()
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// names is an axis of names, at 0, 1, 2 and so on.
type names []string

// Ticks returns a tick for each name.
func (n names) Ticks(low, high float64) (ticks []plot.Tick) {
	for i, name := range n {
		if at := float64(i); low <= at && at <= high {
			ticks = append(ticks, plot.Tick{Value: at, Label: name})
		}
	}
	return ticks
}

// times is an axis of base-10 exponents.
type times struct{}

// Ticks names the decades, and 2 and 5 if there are few of them.
func (times) Ticks(low, high float64) (ticks []plot.Tick) {
	few := high-low < 3
	for decade := math.Floor(low); decade <= high; decade++ {
		for digit := 1.0; digit < 10; digit++ {
			tick := plot.Tick{Value: decade + math.Log10(digit)}
			if digit == 1 || few && (digit == 2 || digit == 5) {
				tick.Label = timeText(digit * math.Pow(10, decade))
			}
			if low <= tick.Value && tick.Value <= high {
				ticks = append(ticks, tick)
			}
		}
	}

	return ticks
}

// plain is a linear axis.
type plain struct{}

// Ticks shortens the names of the default.
func (plain) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, tick := range ticks {
		if tick.Label != "" {
			ticks[i].Label = number(tick.Value)
		}
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
