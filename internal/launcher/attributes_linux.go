package launcher

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// rankAttributes put a rank into its own process group, and make the kernel kill it when
// the thread that started it dies. The syscall package handles a parent that is already
// dead, by comparing parents.
func rankAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// keepAttributes makes this thread keep what rankAttributes asked of the kernel for the
// process's first thread, when it executes a program. The kernel stores the request per
// thread, and of a process that executes a program, the calling thread remains. Until then
// the first thread's request holds, so that a launcher which dies now is noticed, too.
func keepAttributes() error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}
