package doctor

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/goccl/goccl/internal/cgroup"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport/shm"
	"golang.org/x/sys/unix"
)

// threads is how many threads a process of Go has soon.
const threads = 10

// ulimit returns a limit of this process, a huge number if there is none.
func ulimit(resource int) float64 {
	var l unix.Rlimit
	if unix.Getrlimit(resource, &l) != nil {
		return math.MaxUint64
	}
	return float64(l.Cur)
}

// CheckFiles returns an error if this process may open so few files that Go ends it at the next.
func CheckFiles() error {
	if most := ulimit(unix.RLIMIT_NOFILE); most < 9 {
		return fmt.Errorf("no more than %.0f: %w", most, unix.EMFILE)
	}
	return nil
}

// limits returns a finding about the limits of this process, which its ranks inherit.
func limits(root string, ranks int) Finding {
	var shown, advice []string
	verdict := Note
	note := func(what, name string, is, least, soon float64, show func(float64) string) {
		value := "unlimited"
		if is < math.MaxUint64 {
			value = show(is)
		}
		shown = append(shown, fmt.Sprintf("%s %s (%s)", what, value, name))

		switch {
		case is < least:
			verdict, advice = Problem, append(advice, fmt.Sprintf("raise %s: %d ranks need %s", name, ranks, show(soon)))
		case is < soon:
			advice = append(advice, fmt.Sprintf("raise %s: %d ranks need %s at once, and soon %s", name, ranks, show(least), show(soon)))
		}
	}
	count := func(n float64) string { return fmt.Sprintf("%.0f", n) }

	processes, soon := float64(launchenv.LeastProcesses(ranks)), float64(threads*(ranks+2)) // with goccl run and its keeper
	byUser, soonByUser := processes, soon
	if os.Geteuid() == 0 {
		byUser, soonByUser = 0, 0 // the limit is not root's
	}
	free := cgroup.ProcessesFree(root)
	if free.File == "" {
		free = cgroup.Limit{Value: math.MaxUint64, File: "pids.max"}
	}

	files, size := float64(15+4*ranks), float64(shm.SegmentBytes(ranks))
	note("open files", "ulimit -n", ulimit(unix.RLIMIT_NOFILE), files, files, count)
	note("threads of this user", "ulimit -u", ulimit(unix.RLIMIT_NPROC), byUser, soonByUser, count)
	note("file size", "ulimit -f", ulimit(unix.RLIMIT_FSIZE), size, size, Amount)
	note("address space", "ulimit -v", ulimit(unix.RLIMIT_AS), 2<<30, 2<<30, Amount)
	note("more threads", free.File, free.Value, processes, soon, count)
	f := ok(PartProcesses, "limits", "%s", strings.Join(shown, ", "))
	if advice != nil {
		return f.with(verdict, strings.Join(advice, "; "))
	}
	return f
}
