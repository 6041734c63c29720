package launchenv

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// hydraProxy identifies the process through which MPICH's mpiexec starts the
// ranks of one job on this node: the nearest ancestor of that name; shells may be in
// between. It returns "" if no ancestor has the name or /proc is not readable.
func hydraProxy() string {
	namespace := ownNamespace("pid")
	if namespace == "" {
		return ""
	}

	for pid := os.Getppid(); pid > 0; {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return ""
		}

		name, parent, start, ok := parseStat(string(text))
		if !ok {
			return ""
		}
		if name == "hydra_pmi_proxy" {
			return fmt.Sprintf("%s %d %s", namespace, pid, start)
		}
		pid = parent
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

// parseStat parses /proc/PID/stat (proc_pid_stat(5)): pid; name in parentheses,
// which may contain any character; state; parent; ...; as 22nd field the start time
// in clock ticks since boot.
func parseStat(text string) (name string, parent int, start string, ok bool) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return "", 0, "", false
	}
	rest := strings.Fields(text[end+1:]) // from the third field on
	if len(rest) < 20 {
		return "", 0, "", false
	}
	parent, err := strconv.Atoi(rest[1])
	return text[open+1 : end], parent, rest[19], err == nil
}
