package cores

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asClaimer makes the test binary a process that claims the lock of this name and says so. asHeir makes it one that only has the
// claimer's socket.
const (
	asClaimer = "TEST_GOCCL_CLAIMER"
	asHeir    = "TEST_GOCCL_HEIR"
)

func playClaimer(name string) {
	if name == asHeir {
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends
		os.Exit(0)
	}
	l, held := take(name)
	if held || l == nil {
		panic("the name is taken")
	}
	if os.Getenv(asHeir) != "" {
		f, err := l.File()
		if err != nil {
			panic(err)
		}
		heir := exec.Command(os.Args[0])
		heir.Env = append(os.Environ(), asClaimer+"="+asHeir)
		heir.Stdin, heir.Stdout, heir.ExtraFiles = os.Stdin, os.Stdout, []*os.File{f}
		if err := heir.Start(); err != nil {
			panic(err)
		}
		fmt.Println("held")
		os.Exit(0)
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends
	os.Exit(0)
}

// claim starts a process that claims the lock of a name, and returns it when it has the lock. It ends with the test.
func claim(t *testing.T, name string, change func(*exec.Cmd)) *exec.Cmd {
	t.Helper()
	claimer := exec.Command(os.Args[0])
	claimer.Env = append(os.Environ(), asClaimer+"="+name)
	stdin, err := claimer.StdinPipe()
	require.NoError(t, err)
	out, err := claimer.StdoutPipe()
	require.NoError(t, err)
	change(claimer)
	require.NoError(t, claimer.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_, _ = io.Copy(io.Discard, out) // until it, and who has its socket, have ended
		_ = claimer.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)
	return claimer
}

// twoCores returns the first two cores of this machine, all of which are free.
func twoCores(t *testing.T) (a, b Core) {
	t.Helper()
	m, err := Survey()
	require.NoError(t, err)
	require.Empty(t, m.Held)
	if len(m.Free) < 2 {
		t.Skip("there is one core")
	}
	return m.Free[0], m.Free[1]
}

// requireOneJob fails the test unless all cores are free, one job gets them, and no other job does meanwhile.
func requireOneJob(t *testing.T) {
	t.Helper()
	usable, err := Usable()
	require.NoError(t, err)
	m, err := Survey()
	require.NoError(t, err)
	require.Empty(t, m.Held)
	r, err := Reserve(1, true)
	require.NoError(t, err)
	require.Equal(t, [][]int{usable}, r.Shares)
	_, err = Reserve(1, true)
	require.Error(t, err)
	m, err = Survey()
	require.NoError(t, err)
	require.Empty(t, m.Free)
	r.Release()
}

// on lets a process use some hyperthreads only.
func on(t *testing.T, cpus []int, start func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	usable, err := Usable()
	require.NoError(t, err)
	require.NoError(t, Use(cpus))
	defer func() { require.NoError(t, Use(usable)) }()
	start()
}

// A claim of a process that may not run on the core does not count.
func TestClaimOfACoreElsewhere(t *testing.T) {
	a, b := twoCores(t)
	on(t, a.CPUs, func() { claim(t, b.lockName(0), func(*exec.Cmd) {}) })
	requireOneJob(t)
}

// A claim of a process that has ended does not count, even if another process has its socket.
func TestClaimOfADeadProcess(t *testing.T) {
	a, _ := twoCores(t)
	claimer := claim(t, a.lockName(0), func(c *exec.Cmd) { c.Env = append(c.Env, asHeir+"=1") })
	require.NoError(t, unix.Waitid(unix.P_PID, claimer.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)) // it is a zombie then
	requireOneJob(t)
	_, err := claimer.Process.Wait()
	require.NoError(t, err)
	requireOneJob(t)
}

// A claim of a socket on which nobody listens does not count.
func TestClaimThatNobodyAnswersFor(t *testing.T) {
	a, _ := twoCores(t)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + a.lockName(0)}))
	requireOneJob(t)
}

// A claim counts under any of its names: a job that took its core beside one that does not count keeps it when the other is gone.
func TestClaimCountsUnderAllNames(t *testing.T) {
	a, b := twoCores(t)
	var claimer *exec.Cmd
	on(t, a.CPUs, func() { claimer = claim(t, b.lockName(0), func(*exec.Cmd) {}) })
	r, err := Reserve(1, true)
	require.NoError(t, err)
	defer r.Release()
	require.NoError(t, claimer.Process.Kill())
	_, err = claimer.Process.Wait()
	require.NoError(t, err)
	m, err := Survey()
	require.NoError(t, err)
	require.Empty(t, m.Free)
	_, err = Reserve(1, true)
	require.ErrorContains(t, err, "other jobs of goccl run hold")
}

// A claim of another user counts as one of this user.
func TestClaimOfAnotherUser(t *testing.T) {
	a, b := twoCores(t)
	if os.Geteuid() != 0 {
		t.Skip("only root starts processes of other users")
	}
	claim(t, a.lockName(0), func(c *exec.Cmd) {
		c.Path = "/proc/self/exe" // that user may not look into the directory of this program
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234, Gid: 1234}}
	})
	m, err := Survey()
	require.NoError(t, err)
	require.Equal(t, []Core{a}, m.Held)
	require.Contains(t, m.Free, b)
}

// Who looks whether a claim counts is no guest of the job: its ranks stay where they are.
func TestLookingIsNoVisit(t *testing.T) {
	r, err := Reserve(1, true)
	require.NoError(t, err)
	defer r.Release()
	m, err := Survey()
	require.NoError(t, err)
	c, err := net.Dial("unix", "@"+m.Held[0].lockName(0)) // as Survey has done
	require.NoError(t, err)
	defer c.Close()
	leave := Visit()
	defer leave()
	for range m.Held {
		<-r.Changed()
		if r.guests.n.Load() == int32(len(m.Held)) {
			break
		}
	}
	require.EqualValues(t, len(m.Held), r.guests.n.Load(), "a guest of each core, and not who looked")
}
