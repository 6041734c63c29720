package launcher

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/test/screen"
)

func init() {
	programs["line"] = func([]string) {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Printf("got %q, %v\n", line, err)
		stay()
	}
	// The others wait for rank 0, which waits for input.
	programs["reads"] = func([]string) {
		log.Fatal(dist.Spawn(func(_ context.Context, rank int) error {
			err := dist.InitProcessGroup("ccl")
			if err == nil && rank == 0 {
				_, err = bufio.NewReader(os.Stdin).ReadString('\n')
			}
			return errors.Join(err, dist.Barrier(dist.WithCallTimeout(300*time.Millisecond)))
		}))
	}
	// Runs one of the programs in the background of its terminal.
	programs["background"] = func(args []string) {
		child := command(args...)
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		_ = child.Run()
	}
	// A process 1 that waits for one of the programs, and for nothing else.
	programs["careless"] = func(args []string) {
		child := command(args...)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Run(); err != nil {
			panic(err)
		}
	}
}

// terminal makes a terminal, and shows what is written to it.
func terminal(t *testing.T) (keyboard, side *os.File, shown *screen.Screen) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	side, err = os.OpenFile(filepath.Join("/dev/pts", fmt.Sprint(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	shown = screen.New()
	go io.Copy(shown, keyboard)
	return keyboard, side, shown
}

// On a terminal, rank 0 gets what is typed, prefixes have colours, and ctrl-C
// reaches the ranks through the launcher.
func TestTerminal(t *testing.T) {
	for setting, prefix := range map[string]string{"NO_COLOR=": "\x1b[36m[0]\x1b[0m ", "NO_COLOR=1": "[0] "} {
		keyboard, side, shown := terminal(t)
		launcher := command("launcher", "2", "line")
		launcher.Env = append(launcher.Env, setting)
		launcher.Stdin, launcher.Stdout, launcher.Stderr = side, side, side
		launcher.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		require.NoError(t, launcher.Start())
		require.NoError(t, side.Close())
		_, err := keyboard.WriteString("typed\n")
		require.NoError(t, err)
		shown.Await(t, prefix+`got "typed\n", <nil>`, 1)
		shown.Await(t, `got "", EOF`, 1)
		shown.Await(t, "up", 2)
		_, err = keyboard.Write([]byte{3})
		require.NoError(t, err)
		var exit *exec.ExitError
		require.ErrorAs(t, launcher.Wait(), &exit)
		require.Equal(t, 130, exit.ExitCode())
		shown.Await(t, "ranks 0, 1: ended by SIGINT", 1)
		require.NoError(t, keyboard.Close())
	}
}

// A job in the background of a terminal has no input, and says so if a rank may have waited for it.
func TestBackground(t *testing.T) {
	keyboard, side, shown := terminal(t)
	launcher := command("background", "launcher", "2", "reads")
	launcher.Stdin, launcher.Stdout, launcher.Stderr = side, side, side
	launcher.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, launcher.Start())
	require.NoError(t, side.Close())
	shown.Await(t, "the job was in the background, where it has no standard input, and rank 0 (pid ", 1)
	require.NoError(t, launcher.Wait())
	require.NoError(t, keyboard.Close())
}

// As process 1 of a container, a launcher works as elsewhere, and also
// beside a process 1 that does not wait for orphans.
func TestProcessOne(t *testing.T) {
	unshare := []string{"--pid", "--fork", "--kill-child", "--mount-proc"}
	if out, err := exec.Command("unshare", append(unshare, "true")...).CombinedOutput(); err != nil {
		t.Skipf("no process 1 can be had here: unshare: %v\n%s; TestOrphans has what matters", err, out)
	}
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Second) // less than the grace period
	defer cancel()
	contained := func(args ...string) (string, error) {
		text, err := exec.CommandContext(soon, "unshare", append(append(unshare, self()), args...)...).CombinedOutput()
		return string(text), err
	}
	text, err := contained("launcher", "2", "parent", "does not", "stay")
	require.NoError(t, err, text)
	text, err = contained("careless", "launcher", "2", "parent", "does not", "stay")
	require.NoError(t, err, text)
	text, err = contained("launcher", "2", "exit", "1", "5")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, text)
	require.Equal(t, 5, exit.ExitCode(), text)
}
