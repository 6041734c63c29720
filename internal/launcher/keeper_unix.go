//go:build unix

package launcher

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// keeper is the process that kills the ranks if the launcher dies.
type keeper struct {
	process *os.Process // nil before it was started
	pipe    *os.File    // its write end: ranks that start, and those that have ended
}

// start starts the keeper of a job. Its reports have a name of this launcher's own.
//
// It inherits nothing of the launcher's: a process that reads the launcher's output to its end
// would wait for the keeper, too.
func (k *keeper) start(program, reports, job string, null *os.File) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	k.pipe = w
	k.process, err = os.StartProcess(program, []string{keeperName, reports, job}, &os.ProcAttr{
		Files: []*os.File{null, null, null, r},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	return err
}

// forget tells the keeper that a group is empty.
func (k *keeper) forget(pid int) {
	_, _ = k.pipe.WriteString(endLine(pid)) // the keeper may have been killed
}

// dismiss ends the keeper after the last rank.
func (k *keeper) dismiss() {
	if k.process != nil {
		_ = k.process.Kill() // it may already be dead
		_, _ = k.process.Wait()
	}
}

// startLine and endLine are the lines that the keeper reads.
func startLine(pid int) string { return fmt.Sprintf("%+d\n", pid) }
func endLine(pid int) string   { return fmt.Sprintf("%+d\n", -pid) }

// runKeeper is the main function of the keeper.
//
// It reads "+pid" for ranks that start and "-pid" for those that have ended. When all writers are
// gone, the launcher is dead: it kills the remaining groups, and removes the job's shared memory
// and reports.
func runKeeper(ranks *os.File, reports, job string, memory Memory) int {
	signal.Ignore(Signals...) // it must outlive a launcher that they end
	groups := make(map[int]bool)
	for lines := bufio.NewScanner(ranks); lines.Scan(); {
		if pid, err := strconv.Atoi(lines.Text()); err == nil {
			if pid > 0 {
				groups[pid] = true
			} else {
				delete(groups, -pid)
			}
		}
	}

	for pid := range groups {
		signalGroup(pid, syscall.SIGKILL)
	}
	for range 100 {
		time.Sleep(10 * time.Millisecond) // killed processes take time to die
		if memory.removeLeftovers(job+"-") == nil {
			break
		}
	}
	removeReports(reports)
	return 0
}
