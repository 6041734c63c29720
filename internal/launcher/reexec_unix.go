//go:build unix

package launcher

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/goccl/goccl/transport/shm"
)

// The names with which Run starts images of this program.
const (
	keeperName = "goccl-keeper" // followed by the name of the job
	rankName   = "goccl-rank"   // followed by the program's file, its arguments
)

// keeperPipe is the descriptor of the keeper's pipe: in the keeper the read end, in a rank
// the write end.
const keeperPipe = 3

// Reexecuted runs this process as a keeper or a rank, and does not return, if Job.Run
// started it as one. Programs that call Job.Run must call Reexecuted first.
func Reexecuted() {
	switch os.Args[0] {
	case keeperName:
		os.Exit(keep(os.NewFile(keeperPipe, "ranks"), os.Args[1])) //nolint:forbidigo // the process is the keeper, not the program
	case rankName:
		os.Exit(become(os.NewFile(keeperPipe, "keeper"), os.Args[1], os.Args[2:])) //nolint:forbidigo // the program was not executed
	}
}

// keep reads "+pid" for ranks that start and "-pid" for those that are over. When
// all writers are gone, the launcher is dead: keep kills the remaining groups, and removes
// the job's shared memory and reports.
func keep(ranks *os.File, job string) int {
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
		if shm.RemoveLeftovers(job+"-") == nil {
			break
		}
	}
	removeReports(job)
	return 0
}

// begins and over are the lines that the keeper reads.
func begins(pid int) string { return fmt.Sprintf("%+d\n", pid) }
func over(pid int) string   { return fmt.Sprintf("%+d\n", -pid) }

// become sends its process id to the keeper and executes the program, which keeps the process
// id. It returns the exit status if that fails.
func become(keeper *os.File, program string, args []string) int {
	if _, err := keeper.WriteString(begins(os.Getpid())); err != nil {
		fmt.Fprintf(os.Stderr, "goccl: nobody keeps this rank: %v\n", err)
		return statusFailed
	}
	syscall.CloseOnExec(keeperPipe)
	runtime.LockOSThread() // not always the process's first thread
	if err := keepAttributes(); err != nil {
		fmt.Fprintf(os.Stderr, "goccl: the kernel does not end this rank with its launcher: %v\n", err)
		return statusFailed
	}
	err := syscall.Exec(program, args, os.Environ())
	fmt.Fprintf(os.Stderr, "goccl: %s cannot be executed: %v\n", program, err)
	if errors.Is(err, fs.ErrNotExist) { // or its interpreter
		return statusNotFound
	}
	return statusNotExecutable
}
