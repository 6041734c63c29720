//go:build unix

package launcher

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/cgroup"
	"github.com/goccl/goccl/internal/launchenv"
)

// shortages are what the control groups had counted before the job, by file.
type shortages map[string]float64

func countShortages(root string) shortages {
	counts := cgroup.OutOfMemory.Counts(root, cgroup.Self)
	maps.Copy(counts, cgroup.OutOfProcesses.Counts(root, cgroup.Self))
	maps.Copy(counts, cgroup.OutOfTime.Counts(root, cgroup.Self))
	return counts
}

// rankGroups are the control groups of a rank that has moved to others than the launcher's.
type rankGroups struct {
	names string // as /proc has them
	kills map[string]float64
	limit cgroup.Limit
}

// noteGroups notes what the control groups had counted when ranks came into them.
func (l *launcher) noteGroups(root string) {
	all, _ := os.ReadFile(root + "/proc/self/cgroup")
	for i := range l.ranks {
		r, process := &l.ranks[i], strconv.Itoa(l.ranks[i].PID)
		names, _ := os.ReadFile(root + "/proc/" + process + "/cgroup")
		if text := string(names); r.running && text != "" && text != string(all) && text != r.groups.names {
			r.groups = rankGroups{text, cgroup.OutOfMemory.Counts(root, process), cgroup.MemoryLimit(root, process)}
		}
	}
}

// nearLimit is the share of a memory limit from which the launcher warns.
const nearLimit = 0.9

// warnOfMemory warns once of control groups of ranks that are near their memory limit, and names
// the rank that has the most.
func (l *launcher) warnOfMemory(root string) {
	groups := make(map[string][]int)
	for i := range l.ranks {
		if r := &l.ranks[i]; r.running && !r.isNear {
			groups[r.groups.names] = append(groups[r.groups.names], i)
		}
	}

	for names, ranks := range groups {
		process := cgroup.Self
		if names != "" {
			process = strconv.Itoa(l.ranks[ranks[0]].PID)
		}
		limit, used := cgroup.MemoryUse(root, process)
		if limit.File == "" || used < nearLimit*limit.Value {
			continue
		}

		largest, most := ranks[0], 0.0
		for _, i := range ranks {
			l.ranks[i].isNear = true
			if has := l.ranks[i].memory(root); has > most {
				largest, most = i, has
			}
		}
		l.warn(largest, fmt.Sprintf("the control group uses %.0f of its %.0f MiB of memory (%s), rank %d (pid %d) the most, %.0f MiB: at the limit the kernel kills a process",
			used/(1<<20), limit.Value/(1<<20), limit.File, largest, l.ranks[largest].PID, most/(1<<20)))
	}
}

// memory returns the memory that the processes of a rank have, in bytes, shared memory included.
func (r *rank) memory(root string) (sum float64) {
	pids := processesOf(r.PID)
	if pids == nil {
		pids = []int{r.PID}
	}
	for _, pid := range pids {
		var size, resident float64
		text, _ := os.ReadFile(fmt.Sprintf("%s/proc/%d/statm", root, pid)) // it may have ended
		if _, err := fmt.Sscan(string(text), &size, &resident); err == nil {
			sum += resident * float64(os.Getpagesize())
		}
	}
	return sum
}

// describe says whether a rank may have been killed since the memory of its control groups ran out.
func (g *rankGroups) describe(root string) string {
	for file, before := range g.kills {
		if n, _ := cgroup.OutOfMemory.CountIn(root, file); n > before {
			return describeMemory(g.limit)
		}
	}
	return ""
}

// describeTime says whether a rank may have been killed at the limit of its CPU time. The system
// counts ticks for the limit, and also some that another machine on the processor used.
func (c *child) describeTime() string {
	used := c.state.UserTime() + c.state.SystemTime()
	if c.limit == 0 || used < c.limit/2 {
		return ""
	}
	return fmt.Sprintf("; its CPU time was %v, and ulimit -t is %v", used.Round(time.Second/10), c.limit)
}

func describeMemory(limit cgroup.Limit) string {
	if limit.File == "" { // version 2 counts such a kill, too
		return "; the machine ran out of memory"
	}
	return fmt.Sprintf("; the control group ran out of memory: its limit is %.0f MiB (%s)", limit.Value/(1<<20), limit.File)
}

// describe says of what the control groups had too little since then, which may be why a process
// ended: of memory if it was killed. It returns "" if they had enough.
func (before shortages) describe(root string, isKilled bool) string {
	event := cgroup.OutOfProcesses
	if isKilled {
		event = cgroup.OutOfMemory
	}

	for file, n := range event.Counts(root, cgroup.Self) {
		switch {
		case n <= before[file]:
		case isKilled:
			return describeMemory(cgroup.MemoryLimit(root, cgroup.Self))
		default:
			return fmt.Sprintf("; the control group refused %.0f processes or threads (%s): raise its pids.max", n-before[file], file)
		}
	}

	if isKilled {
		return "; if nobody has killed it, see dmesg, and the memory.events of its control group"
	}
	return ""
}

// describeQuota says how often the control groups had used up their CPU time since then, for which
// others may have waited in vain, or "".
func (before shortages) describeQuota(root string) string {
	quota := cgroup.CPUQuota(root)
	for file, n := range cgroup.OutOfTime.Counts(root, cgroup.Self) {
		if n > before[file] && filepath.Dir(file) == filepath.Dir(quota.File) {
			return fmt.Sprintf("; the control group was out of CPU time %.0f times: its quota is %.4g cores (%s)", n-before[file], quota.Value, quota.File)
		}
	}
	return ""
}

// raiseProcesses says what to do if the system refuses a process or a thread.
const raiseProcesses = "; raise ulimit -u, or the pids.max of the control group"

// isKilled reports whether the kernel or a person has killed the rank, or a program in its shell.
func (r Rank) isKilled() bool {
	return r.Asked == 0 && (r.Signal == syscall.SIGKILL || r.Exit == statusSignal+int(syscall.SIGKILL))
}

// reserveThreads makes the runtime start the threads that a job needs, which it keeps. Once the
// ranks run there may be no room for more, which would crash this process. It returns an error if
// there is none for the least that the job needs.
func reserveThreads(ranks int) error {
	threads, needed := ranks+launchenv.LauncherThreads, launchenv.LeastProcesses(ranks)
	if free := cgroup.ProcessesFree(""); free.File != "" && free.Value < float64(needed) {
		return fmt.Errorf("the control group allows %.0f more processes and threads (%s): %d ranks and their launcher need %d",
			free.Value, free.File, ranks, needed)
	}

	var started sync.WaitGroup
	started.Add(threads)
	for range threads {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			started.Wait() // all threads exist at the same time
		}()
	}
	started.Wait()
	return nil
}
