package tool

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
	"github.com/goccl/goccl/transport/shm"
	"github.com/stretchr/testify/require"
)

// waiters are the variables of ranks that run waitAsRank, without their rank.
func waiters(job string) []string {
	return append(os.Environ(), asWaiter+"=1", "GOCCL_SHM_NAME=/"+job, "GOCCL_SHM_SIZE=2", "GOCCL_TIMEOUT=none")
}

// inspected returns the text and the exit status of goccl inspect.
func inspected(t *testing.T, args ...string) (text string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), append([]string{"inspect"}, args...), &out, &errs)
	return out.String() + errs.String(), status
}

// eventually waits until goccl inspect has this status and text.
func eventually(t *testing.T, status int, want string, args ...string) {
	t.Helper()
	var text string
	var got int
	defer func() {
		if t.Failed() {
			t.Logf("status %d: %s", got, text)
		}
	}()
	require.Eventually(t, func() bool {
		text, got = inspected(t, args...)
		return got == status && bytes.Contains([]byte(text), []byte(want))
	}, 30*time.Second, 10*time.Millisecond, "want status %d and %q", status, want)
}

// The state of the ranks' processes and the age of their calls are shown, and decide the exit status.
func TestInspectHealth(t *testing.T) {
	job := fmt.Sprintf("inspect-health-%d", os.Getpid())
	var ranks [2]*exec.Cmd
	var inputs [2]io.Writer
	for rank := range ranks {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(waiters(job), fmt.Sprint("GOCCL_SHM_RANK=", rank))
		in, err := c.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		ranks[rank], inputs[rank] = c, in
	}
	eventually(t, 0, "rank 1: call 1, barrier (done)\n  no difference", job)

	_, err := inputs[0].Write([]byte{1})
	require.NoError(t, err)
	eventually(t, 0, "  not all ranks have come to call 2\n    rank 0: barrier\n    rank 1: has not come yet\n", job)
	eventually(t, 3, ", to which rank 1 did not come", job, "--late=1ns")
	_, status := inspected(t, job, "--late=1h")
	require.Zero(t, status)
	eventually(t, 0, "rank 0: call 2, barrier (begun for ", job)
	eventually(t, 1, ", to which rank 1 did not come", job, "--health", "--limit=1ns")
	eventually(t, 0, "  rank 1: in no call\nwho is slow is not known", job, "--health", "--limit=1h")
	eventually(t, 0, "(begun for ", job, "--health")
	require.Eventually(t, func() bool { // the newest job of this user, perhaps of another test
		text, status := inspected(t, "--health", "--limit=1h")
		return status < 2 && strings.HasPrefix(text, "job ")
	}, 30*time.Second, 10*time.Millisecond)
	eventually(t, 0, `"call": "in no call"`, job, "--health", "--json", "--limit=1h")

	pid := ranks[1].Process.Pid
	require.NoError(t, ranks[1].Process.Signal(syscall.SIGSTOP))
	stopped := fmt.Sprintf("rank 1 (pid %d) is stopped: kill -CONT lets it go on\n", pid)
	eventually(t, 3, stopped, job)
	eventually(t, 1, stopped, job, "--health", "--limit=1h")
	text, _ := inspected(t)
	require.Regexp(t, job+`-1 +2 +\d+ +\d+s +rank 1 stopped +`, text)
	require.NoError(t, ranks[1].Process.Signal(syscall.SIGCONT))
	eventually(t, 0, "rank 1: has not come yet", job)
	inspectTraced(t, job, pid)

	// A dead rank is a zombie until its parent has waited. The other one is stopped: it would notice and end.
	require.NoError(t, ranks[0].Process.Signal(syscall.SIGSTOP))
	require.NoError(t, ranks[1].Process.Kill())
	eventually(t, 3, fmt.Sprintf("rank 1 (pid %d) is a zombie", pid), job)
	_ = ranks[1].Wait() // it was killed
	text, status = inspected(t, job)
	require.Equal(t, 3, status)
	require.Contains(t, text, "; rank 1 has ended\n")
	require.NoError(t, ranks[0].Process.Kill())
	_ = ranks[0].Wait()
	eventually(t, 2, fmt.Sprintf("no job %q of this user is running", job), job, "--health")
}

// inspectTraced traces a rank for a moment.
func inspectTraced(t *testing.T, job string, pid int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.PtraceAttach(pid); err != nil {
		t.Logf("ranks that are traced: not tried: %v", err)
		return
	}
	eventually(t, 3, fmt.Sprintf("rank 1 (pid %d) is held by a debugger", pid), job)
	var status syscall.WaitStatus
	_, err := syscall.Wait4(pid, &status, 0, nil)
	require.NoError(t, err)
	require.NoError(t, syscall.PtraceDetach(pid))
	eventually(t, 0, "rank 1: has not come yet", job)
}

// The processes of another pid namespace have no ids here, which the list explains.
func TestInspectElsewhere(t *testing.T) {
	job := fmt.Sprintf("inspect-elsewhere-%d", os.Getpid())
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", `GOCCL_SHM_RANK=0 "$0" <&3 & GOCCL_SHM_RANK=1 "$0" <&3 & wait`, os.Args[0])
	c.Env = waiters(job)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	defer in.Close()
	c.ExtraFiles = []*os.File{in}
	if err := c.Start(); err != nil {
		t.Skipf("this machine does not allow a pid namespace: %v", err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }() // with the init process all others end
	eventually(t, 0, "no difference between these ranks\n", job)
	text, _ := inspected(t)
	require.Regexp(t, job+`-1 +2 +- +\d+s +ranks 0, 1 elsewhere +-\n`, text)
	require.Contains(t, text, noPID)
}

// Without a job, health is that of no job: status 2.
func TestHealthOfNoJob(t *testing.T) {
	_, err := namesOf([]inspect.Listed{}, nil)
	require.EqualError(t, err, "no job of this user is running")
	names, err := namesOf([]inspect.Listed{{RunningJob: shm.RunningJob{Name: "a"}}}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, names)
	_, err = namesOf(nil, os.ErrPermission)
	require.ErrorIs(t, err, os.ErrPermission)
}
