package doctor

import (
	"fmt"
	"math"
	"os"

	"github.com/goccl/goccl/internal/cgroup"
	"github.com/goccl/goccl/transport/shm"
	"golang.org/x/sys/unix"
)

// threads is how many threads a process of Go has at least, and has soon.
const threads = 10

// CheckFiles returns an error if this process may open so few files that Go ends it at the next.
func CheckFiles() error {
	var is unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &is); err == nil && is.Cur < 9 {
		return fmt.Errorf("no more than %d: %w", is.Cur, unix.EMFILE)
	}
	return nil
}

// limits returns a finding about the limits of this process, which its ranks inherit.
func limits(root string, ranks int) Finding {
	f := ok(PartProcesses, "limits", "")
	processes := uint64(threads * (ranks + 2)) // with goccl run and its keeper
	byUser := processes
	if os.Geteuid() == 0 {
		byUser = 0 // the limit is not root's
	}

	for _, l := range []struct {
		name     string
		resource int
		flag     rune
		least    uint64
	}{
		{"open files", unix.RLIMIT_NOFILE, 'n', 15 + 4*uint64(ranks)},
		{"threads of this user", unix.RLIMIT_NPROC, 'u', byUser},
		{"bytes of a file", unix.RLIMIT_FSIZE, 'f', uint64(shm.SegmentBytes(ranks))},
		{"bytes of addresses", unix.RLIMIT_AS, 'v', 2 << 30},
	} {
		var is unix.Rlimit
		if err := unix.Getrlimit(l.resource, &is); err != nil {
			continue
		}
		value := fmt.Sprint(is.Cur)
		if is.Cur == math.MaxUint64 {
			value = "unlimited"
		}

		f.Says += fmt.Sprintf("%s %s (ulimit -%c), ", l.name, value, l.flag)
		if is.Cur < l.least {
			f = f.with(Problem, fmt.Sprintf("raise ulimit -%c: %d ranks need %d", l.flag, ranks, l.least))
		}
	}

	free := cgroup.ProcessesFree(root)
	if free.File == "" {
		f.Says += "no pids.max"
		return f
	}
	f.Says += fmt.Sprintf("%.0f more threads by %s", free.Value, free.File)
	if free.Value < float64(processes) {
		f = f.with(Problem, fmt.Sprintf("raise pids.max: %d ranks need %d threads", ranks, processes))
	}
	return f
}
