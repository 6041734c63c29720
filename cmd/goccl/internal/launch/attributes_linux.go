package launch

import "syscall"

// rankAttributes put a rank into a process group of its own, and have the kernel kill
// it when the thread dies that starts it. That a parent who is dead by then sends no
// signal is looked after by the syscall package, which compares parents.
func rankAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
