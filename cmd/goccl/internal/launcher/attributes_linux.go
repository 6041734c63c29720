package launcher

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// rankAttributes put a rank into a process group of its own, and have the kernel kill
// it when the thread dies that starts it. That a parent who is dead by then sends no
// signal is looked after by the syscall package, which compares parents.
func rankAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes this process the parent of what ranks leave behind, as it is
// anyway if it is process 1 of a container. Dead orphans stay in their groups until
// their parent has waited for them, and not every process 1 does that.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
