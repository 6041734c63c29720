package deploy

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// isolated is a command in namespaces of mounts and processes of its own, whose process 1 it is.
func isolated(t *testing.T, mounts string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", "mount --make-rprivate / && " + mounts + ` && exec "$@"`, "sh"}, args...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	return c
}

// TestProcessOne runs the command of examples/deploy/node.yaml as process 1, with a training that has
// checkpoints. Where SIGTERM or SIGKILL has ended it, nothing stays in /dev/shm, and the next start
// goes on and ends with the undisturbed weights. The liveness probe of the file succeeds meanwhile.
func TestProcessOne(t *testing.T) {
	const proc, clean = "mount -t proc proc /proc", "mount -t tmpfs tmpfs /dev/shm"
	if out, err := isolated(t, proc+" && "+clean, "true").CombinedOutput(); err != nil {
		t.Skipf("this machine does not allow namespaces: %v %s", err, out)
	}
	var job manifest
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "examples/deploy/node.yaml")), &job))
	container := job.Spec.Template.Spec.Containers[0]
	require.Equal(t, "Job", job.Kind)
	require.Contains(t, container.Command, "--max-restarts")
	require.Equal(t, "/train", container.Args[0])
	for i, mount := range container.VolumeMounts {
		require.Equal(t, mount.Name, job.Spec.Template.Spec.Volumes[i].Name)
	}

	bin := t.TempDir()
	goccl, train := filepath.Join(bin, "goccl"), filepath.Join(bin, "train")
	for file, source := range map[string]string{goccl: "examples/deploy/goccl", train: "examples/ddp"} {
		out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, root+source).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	start := func(dir, epochs string) *exec.Cmd {
		args := slices.Concat([]string{goccl}, container.Command[1:],
			[]string{"--pin=off", "/bin/sh", "-c", `echo job $GOCCL_SHM_NAME; exec "$@"`, "sh", train, "-epochs", epochs, "-plot", "", "-checkpoint", dir})
		return isolated(t, proc, args...)
	}
	const enough = "20"
	weights := regexp.MustCompile(`sha256 \w+`)
	undisturbed, err := start(t.TempDir(), enough).Output()
	require.NoError(t, err)
	want := weights.FindString(string(undisturbed))
	require.NotEmpty(t, want)

	t.Run("liveness", func(t *testing.T) {
		c := start(t.TempDir(), "1000000")
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if !isEpoch(lines.Text(), 1) {
				continue
			}
			probe := append([]string{"-t", fmt.Sprint(c.Process.Pid), "-m", "-p", goccl}, container.LivenessProbe.Exec.Command[1:]...)
			text, err := exec.CommandContext(t.Context(), "nsenter", probe...).CombinedOutput()
			require.NoError(t, err, string(text))
			require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		}
		require.Error(t, c.Wait())
	})

	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			dir := t.TempDir()
			first := start(dir, enough)
			var stderr bytes.Buffer
			first.Stderr = &stderr
			out, err := first.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, first.Start())
			name := ""
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if key, ok := strings.CutPrefix(lines.Text(), "[0] job /"); ok {
					name = key
				}
				if isEpoch(lines.Text(), 3) {
					require.NoError(t, first.Process.Signal(signal))
				}
			}
			require.Error(t, first.Wait())
			require.NotContains(t, stderr.String(), "restart 1", "a signal is no failure")
			require.NotEmpty(t, name)
			memory, err := filepath.Glob("/dev/shm/*" + name + "*")
			require.NoError(t, err)
			require.Empty(t, memory)

			again, err := start(dir, enough).Output()
			require.NoError(t, err)
			require.Equal(t, want, weights.FindString(string(again)))
			require.False(t, slices.ContainsFunc(strings.Split(string(again), "\n"), func(line string) bool { return isEpoch(line, 1) }), "it goes on")
			if signal == syscall.SIGKILL { // the keeper has died as well
				out, err := isolated(t, proc+" && "+clean, goccl, "doctor", "--clean").CombinedOutput()
				require.NoError(t, err, string(out))
				require.Contains(t, string(out), name)
			}
			reports, err := filepath.Glob(filepath.Join(temporary, "goccl-*"))
			require.NoError(t, err)
			require.Empty(t, reports)
		})
	}
}

// isEpoch reports whether a line is that of an epoch in the table of examples/ddp.
func isEpoch(line string, number int) bool {
	fields := strings.Fields(line)
	return len(fields) > 2 && fields[0] == "[0]" && fields[1] == fmt.Sprint(number)
}
