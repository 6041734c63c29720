//go:build unix

package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// The names with which Run starts this program again.
const (
	keeperName = "goccl-keeper" // followed by the name of the launcher's reports, and that of the job
	rankName   = "goccl-rank"   // followed by the program's file, its arguments
)

// keeperPipe is the descriptor of the keeper's pipe: in the keeper the read end, in a rank
// the write end.
const keeperPipe = 3

// Reexecuted runs this process as a keeper or a rank, and does not return, if Spec.Run started it
// as one.
//
// Programs that call Spec.Run must call Reexecuted first. The keeper of a job whose launcher has
// died removes what the job has left in memory.
func Reexecuted(memory Memory) {
	switch os.Args[0] {
	case keeperName:
		os.Exit(runKeeper(os.NewFile(keeperPipe, "ranks"), os.Args[1], os.Args[2], memory)) //nolint:forbidigo // the process is the keeper, not the program
	case rankName:
		os.Exit(executeRank(os.NewFile(keeperPipe, "keeper"), os.Args[1], os.Args[2:])) //nolint:forbidigo // the program was not executed
	}
}

// executeRank sends its process id to the keeper and executes the program, which has the same
// process id. It returns the exit status if that fails.
func executeRank(keeper *os.File, program string, args []string) int {
	if _, err := keeper.WriteString(startLine(os.Getpid())); err != nil {
		fmt.Fprintf(os.Stderr, "goccl: this rank does not start, since the keeper of the job has ended: %v\n", err)
		return statusFailed
	}
	syscall.CloseOnExec(keeperPipe)
	runtime.LockOSThread() // not always the process's first thread
	if err := keepAttributes(); err != nil {
		fmt.Fprintf(os.Stderr, "goccl: the kernel does not end this rank with its launcher: %v\n", err)
		return statusFailed
	}

	yieldMemory()
	err := syscall.Exec(program, args, os.Environ())
	fmt.Fprintf(os.Stderr, "goccl: %s cannot be executed: %v\n", program, err)
	if errors.Is(err, fs.ErrNotExist) { // or its interpreter
		return statusNotFound
	}
	return statusNotExecutable
}
