package measure

import (
	"path/filepath"
	"strconv"
	"strings"
)

// coreTime is what the machine's cores have done since it was started, in the
// kernel's ticks; zero where that is not known.
type coreTime struct {
	cores           int
	all, idle, here float64 // here: in this process
}

// coreTimes reads Linux' /proc/stat and /proc/self/stat; proc(5) has the fields.
func coreTimes(proc string) (t coreTime) {
	for line := range strings.Lines(Contents(filepath.Join(proc, "stat"))) {
		switch fields := strings.Fields(line); {
		case len(fields) >= 9 && fields[0] == "cpu":
			t.all = ticks(fields[1:9]) // after these come guests, who are in them
			t.idle = ticks(fields[4:6])
		case strings.HasPrefix(line, "cpu"):
			t.cores++
		}
	}
	own := Contents(filepath.Join(proc, "self", "stat"))
	if fields := strings.Fields(own[strings.LastIndex(own, ")")+1:]); len(fields) >= 13 { // the name can have spaces in it
		t.here = ticks(fields[11:13])
	}
	return t
}

func ticks(fields []string) (sum float64) {
	for _, field := range fields {
		x, _ := strconv.ParseFloat(field, 64)
		sum += x
	}
	return sum
}

// company returns how many of the cores that this process could have used since
// another moment others had, if it could use so many.
func (t coreTime) company(since coreTime, cores int) float64 {
	perCore := (t.all - since.all) / float64(max(1, t.cores))
	if perCore <= 0 {
		return 0
	}
	others := (t.all - since.all - (t.idle - since.idle) - (t.here - since.here)) / perCore
	return max(0, others+float64(cores)-float64(t.cores))
}
