package launcher

import (
	"os"
	"strconv"
	"strings"
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

// outOfMemoryScore is the file of what the kernel adds to the memory that a process uses, in
// thousandths of what there is, when it looks for one to end because memory runs out.
const outOfMemoryScore = "/proc/self/oom_score_adj"

// yieldMemory makes the kernel end this rank rather than a launcher that uses up to a tenth of the
// memory more: the launcher lives, and says why the job has failed. Where the file cannot be
// written, the kernel may end either.
func yieldMemory() {
	const tenth, most = 100, 1000
	text, _ := os.ReadFile(outOfMemoryScore)
	if score, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		_ = os.WriteFile(outOfMemoryScore, []byte(strconv.Itoa(min(score+tenth, most))), 0)
	}
}
