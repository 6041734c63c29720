package tool

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A machine that lacks what every program needs is told what to do, not only the error of a system call.
func TestAdvice(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		before string // a command of the shell that then becomes goccl
		args   []string
		status int
		want   string
	}{
		"a negative number": {":", []string{"run", "-n", "-1", "true"}, 2, "goccl: error: run: -n -1: from 1 to "},
		"no number":         {":", []string{"run", "-n"}, 2, "goccl: error: --ranks: want a number\n"},
		"an equals sign":    {":", []string{"run", "-n=x", "true"}, 2, `want a number, but got "=x"`},
		"run without proc":  {"umount -l /proc", []string{"run", "-n", "1", "true"}, 2, "/proc/self/exe: no such file or directory: mount /proc, as in mount -t proc proc /proc\n"},
		"no list of jobs":   {"umount -l /proc", []string{"inspect"}, 1, "running jobs: stat /proc/self/stat: no such file or directory: mount /proc,"},
		"no job to find":    {"umount -l /proc", []string{"inspect", "job"}, 1, "running jobs: stat /proc/self/stat: no such file or directory: mount /proc,"},
		"no null device":    {"mount -t tmpfs tmpfs /dev", []string{"run", "-n", "1", "true"}, 2, "open /dev/null: no such file or directory: make it, as in mknod -m 666 /dev/null c 1 3\n"},
		"no file to open":   {"ulimit -n 7", []string{"doctor"}, 1, "goccl: error: no more than 7: too many open files: raise ulimit -n; goccl run opens about 15 files, and 4 for each rank\n"},
		"no files for run":  {"ulimit -n 12", []string{"run", "-n", "1", "true"}, 1, "starting the keeper of the ranks: "},
	} {
		t.Run(name, func(t *testing.T) {
			sh := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", c.before + ` && exec "$0" "$@"`, program}, c.args...)...)
			sh.Env = append(os.Environ(), asProgram+"=1", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
			sh.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
			var errs bytes.Buffer
			sh.Stderr = &errs
			err := sh.Run()
			exit, ended := errors.AsType[*exec.ExitError](err)
			if !ended || exit.ExitCode() == 32 || exit.ExitCode() == 127 { // of mount and umount, or there are none
				t.Skipf("this machine does not allow it: %v %s", err, &errs)
			}
			require.Equal(t, c.status, exit.ExitCode(), "%s", &errs)
			require.Contains(t, errs.String(), c.want)
			if name == "no files for run" {
				require.Contains(t, errs.String(), "too many open files: raise ulimit -n;")
			}
		})
	}
}
