package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/cgroup"
)

// Machine describes where something was measured. Unknown fields are
// empty or 0; most come from Linux' /proc and /sys.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`      // that this process may use
	GOMAXPROCS int    `json:"gomaxprocs"` // the limit of goroutines that run at a time
	Caches     string `json:"caches"`     // of the first core: "L1d 48K, L2 1024K, L3 32M"
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
	Revision   string `json:"revision"` // of the source, if the program was built from a repository
	Load       string `json:"load"`     // average number of runnable processes in the last minute
	ClockNS    int    `json:"clock_ns"` // time to read the clock, included once in every time
}

// ThisMachine describes this machine.
func ThisMachine() Machine {
	return Machine{
		CPU:        Info("/proc/cpuinfo", "model name"),
		Cores:      runtime.NumCPU(),
		GOMAXPROCS: runtime.GOMAXPROCS(0),
		Caches:     caches("/sys/devices/system/cpu/cpu0/cache"),
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		Kernel:     Contents("/proc/sys/kernel/osrelease"),
		Go:         runtime.Version(),
		Revision:   Revision(),
		Load:       load(),
		ClockNS:    clockTime(),
	}
}

// String describes the machine in a line.
func (m Machine) String() string {
	parts := []string{m.CPU, fmt.Sprintf("%d cores, GOMAXPROCS %d", m.Cores, m.GOMAXPROCS), m.Caches,
		strings.TrimSpace(m.OS + "/" + m.Arch + " " + m.Kernel), m.Go}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}

func usableCores() int { return min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }

// Info returns the first value of a name in a file of lines "name : value".
func Info(file, name string) string {
	for line := range strings.Lines(Contents(file)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// AvailableMemory returns how many bytes this process can allocate, on the machine and in its
// control groups, so that the kernel ends neither it nor a process beside it; 0 if that is unknown.
// The machine's files are below root: "" for this one.
func AvailableMemory(root string) int {
	kib, _ := strconv.Atoi(strings.TrimSuffix(Info(root+"/proc/meminfo", "MemAvailable"), " kB"))
	available := kib << 10
	if free := cgroup.MemoryFree(root); free.File != "" && (available == 0 || int(free.Value) < available) {
		available = int(free.Value)
	}
	return available
}

func load() string {
	lastMinute, _, _ := strings.Cut(Contents("/proc/loadavg"), " ")
	return lastMinute
}

func caches(dir string) string {
	indices, _ := filepath.Glob(filepath.Join(dir, "index*"))
	var all []string
	for _, index := range indices {
		name := "L" + Contents(filepath.Join(index, "level"))
		switch Contents(filepath.Join(index, "type")) {
		case "Instruction":
			continue
		case "Data":
			name += "d"
		}
		all = append(all, name+" "+Contents(filepath.Join(index, "size")))
	}

	return strings.Join(all, ", ")
}

// Contents returns a file without surrounding space, "" if it is unreadable.
func Contents(file string) string {
	text, _ := os.ReadFile(file)
	return strings.TrimSpace(string(text))
}

// Revision returns the revision of the source from which this program was built, with a + if that
// was modified; "" if it is unknown.
func Revision() string {
	if BuildSetting("vcs.modified") == "true" {
		return BuildSetting("vcs.revision") + "+"
	}
	return BuildSetting("vcs.revision")
}

// BuildSetting returns a setting with which this program was built, "" if it is unknown; see
// debug.BuildSetting.
func BuildSetting(key string) string {
	if info, found := debug.ReadBuildInfo(); found {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}

// clockTime measures how long it takes to read the clock, in nanoseconds.
func clockTime() int {
	const readings = 1000
	least := time.Duration(1 << 62)
	for range 10 {
		start := time.Now()
		for range readings {
			_ = time.Since(start)
		}
		least = min(least, time.Since(start))
	}
	return int(least.Nanoseconds() / readings)
}
