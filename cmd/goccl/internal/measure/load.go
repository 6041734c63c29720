package measure

import (
	"path/filepath"
	"strconv"
	"strings"
)

// coreTime is the activity of the machine's cores since it was started, in the
// kernel's ticks; zero if unknown.
type coreTime struct {
	cores           int
	all, idle, here float64 // here: of this process
}

// coreTimes reads Linux' /proc/stat and /proc/self/stat; see proc(5).
func coreTimes(proc string) (t coreTime) {
	for line := range strings.Lines(Contents(filepath.Join(proc, "stat"))) {
		switch fields := strings.Fields(line); {
		case len(fields) >= 9 && fields[0] == "cpu":
			t.all = ticks(fields[1:9]) // the fields of guests follow, and are included in these
			t.idle = ticks(fields[4:6])
		case strings.HasPrefix(line, "cpu"):
			t.cores++
		}
	}
	self := Contents(filepath.Join(proc, "self", "stat"))
	if fields := strings.Fields(self[strings.LastIndex(self, ")")+1:]); len(fields) >= 13 { // the name may contain spaces
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

// otherLoad returns how many of this process's cores other processes have used since an
// earlier moment. cores is the number of cores that this process may use.
func (t coreTime) otherLoad(since coreTime, cores int) float64 {
	perCore := (t.all - since.all) / float64(max(1, t.cores))
	if perCore <= 0 {
		return 0
	}
	others := (t.all - since.all - (t.idle - since.idle) - (t.here - since.here)) / perCore
	return max(0, others+float64(cores)-float64(t.cores))
}
