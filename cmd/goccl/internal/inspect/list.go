package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/transport/shm"
)

// Listed is a running job as the list of jobs has it.
type Listed struct {
	shm.RunningJob
	Program string `json:"program"` // of the first rank that is running, with its arguments; "" if it cannot be seen
}

// Jobs returns the running jobs of this user, by name.
func Jobs() ([]Listed, error) {
	jobs, err := shm.Jobs()
	all := make([]Listed, len(jobs))
	for i, j := range jobs {
		all[i].RunningJob = j
		if pid := all[i].PID(); pid != 0 {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // if that fails it has ended
			all[i].Program = program(string(line))
		}
	}
	return all, err
}

// PID returns the process id of the first rank that is running, 0 if none can be seen.
func (r *Listed) PID() int {
	if i := slices.IndexFunc(r.PIDs, func(pid int) bool { return pid != 0 }); i >= 0 {
		return r.PIDs[i]
	}
	return 0
}

// State returns the states of the ranks' processes: "running" if all run, else those of the others,
// such as "rank 1 stopped".
func (r *Listed) State() string {
	ranks := map[string][]int{}
	for i, state := range r.States {
		ranks[state] = append(ranks[state], r.Number(i))
	}
	var others []string
	for _, state := range slices.Sorted(maps.Keys(ranks)) {
		if state != "running" {
			others = append(others, text.Ranks(ranks[state])+" "+state)
		}
	}
	return cmp.Or(strings.Join(others, ", "), "running")
}

// Age returns for how long the job has been running, in whole seconds.
func (r *Listed) Age(now time.Time) time.Duration { return now.Sub(r.Made).Truncate(time.Second) }

// programShown is how many characters of a program and its arguments are shown.
const programShown = 48

// program returns a program and its arguments, as /proc has them, on one line: the program without
// its directory.
func program(cmdline string) string {
	args := strings.Split(strings.TrimRight(cmdline, "\x00"), "\x00")
	if args[0] != "" {
		args[0] = filepath.Base(args[0])
	}

	line := []rune(text.Printable(strings.Join(args, " ")))
	if len(line) > programShown {
		line = append(line[:programShown-3], []rune("...")...)
	}
	return string(line)
}
