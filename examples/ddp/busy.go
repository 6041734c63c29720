package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// coreTime is what the cores of the machine have done since it was started, in the kernel's ticks.
type coreTime struct {
	cores           int
	all, idle, here float64 // here: in this process
}

// proc is where Linux shows what runs.
var proc = "/proc"

// readCoreTime reads stat and self/stat, see proc(5). Where they are missing nothing is known.
func readCoreTime() (t coreTime) {
	machine, _ := os.ReadFile(filepath.Join(proc, "stat"))
	for line := range strings.Lines(string(machine)) {
		switch fields := strings.Fields(line); {
		case len(fields) >= 9 && fields[0] == "cpu":
			t.all = sumTicks(fields[1:9])
			t.idle = sumTicks(fields[4:6])
		case strings.HasPrefix(line, "cpu"):
			t.cores++
		}
	}

	process, _ := os.ReadFile(filepath.Join(proc, "self", "stat"))
	_, numbers, _ := strings.Cut(string(process), ") ")
	if fields := strings.Fields(numbers); len(fields) >= 13 {
		t.here = sumTicks(fields[11:13])
	}
	return t
}

func sumTicks(fields []string) (sum float64) {
	for _, field := range fields {
		ticks, _ := strconv.ParseFloat(field, 64)
		sum += ticks
	}
	return sum
}

// othersSince returns how many of the cores that this process may use others have used since an
// earlier moment.
func (t coreTime) othersSince(before coreTime) float64 {
	perCore := (t.all - before.all) / float64(max(1, t.cores))
	if perCore <= 0 {
		return 0
	}
	others := (t.all - t.idle - t.here - (before.all - before.idle - before.here)) / perCore
	elsewhere := max(0, t.cores-runtime.GOMAXPROCS(0))
	return max(0, others-float64(elsewhere))
}
