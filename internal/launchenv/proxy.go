package launchenv

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Process is a process of this machine, as /proc shows it.
type Process struct {
	PID  int
	Name string // of its program, up to 15 bytes

	state  string // a letter
	parent int
	start  string // in clock ticks since boot: numbers of processes are reused
}

// HasEnded reports whether the process has ended, even if its parent has not waited for it yet.
func (p Process) HasEnded() bool {
	now, err := readProcess(p.PID)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) // not if this process has too many open files
	}
	return now.start != p.start || now.state == "Z" || now.state == "X"
}

// Launcher returns the process that has started this rank: its nearest ancestor that was started
// without the launcher's variables. Shells may be in between.
//
// There is none if the variables may be set by hand, for goccl run, whose ranks the kernel ends
// with it, and where /proc does not show it.
func (j *Job) Launcher() (p Process, ok bool) {
	l := launchers[slices.IndexFunc(launchers, func(l launcher) bool { return l.by == j.By })]
	if l.isGoccl || l.by == "env://" {
		return p, false
	}
	variable := []byte("\x00" + l.variables[len(l.variables)-1] + "=")
	for p := range ancestors {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID)) // err: it is another user's
		if err != nil || !bytes.Contains(append([]byte{0}, environment...), variable) {
			return p, p.PID != 1 // as which a rank ends up that has lost its launcher
		}
	}
	return p, false
}

// hydraProxy identifies the process through which MPICH's mpiexec starts the
// ranks of one job on this node: the nearest ancestor of that name; shells may be in
// between. It returns "" if no ancestor has the name or /proc is not readable.
func hydraProxy() string {
	namespace := ownNamespace("pid")
	for p := range ancestors {
		if p.Name == "hydra_pmi_proxy" && namespace != "" {
			return fmt.Sprintf("%s %d %s", namespace, p.PID, p.start)
		}
	}
	return ""
}

// ownNamespace identifies this process's namespace of a kind, "net" or "pid", among those
// that exist on this machine now. It returns "" if /proc is not readable.
func ownNamespace(kind string) string {
	name, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		return ""
	}
	return name
}

// ancestors yields the parent of this process, its parent and so on, as far as /proc shows them.
func ancestors(yield func(Process) bool) {
	for pid := os.Getppid(); pid > 0; {
		p, err := readProcess(pid)
		if err != nil || !yield(p) {
			return
		}
		pid = p.parent
	}
}

// readProcess returns the process of that number.
func readProcess(pid int) (p Process, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	return parseStat(string(text))
}

// parseStat parses /proc/PID/stat (proc_pid_stat(5)): pid; name in parentheses,
// which may contain any character; state; parent; ...; as 22nd field the start time.
func parseStat(text string) (p Process, err error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	rest := strings.Fields(text[end+1:]) // from the third field on
	if open < 0 || end < open || len(rest) < 20 {
		return p, errors.New("it does not describe a process")
	}

	pid, err1 := strconv.Atoi(strings.TrimSpace(text[:open]))
	parent, err2 := strconv.Atoi(rest[1])
	return Process{pid, text[open+1 : end], rest[0], parent, rest[19]}, errors.Join(err1, err2)
}
