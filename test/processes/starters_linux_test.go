package processes

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A starter starts a job of this program, one rank of which fails. It returns what is wrong with what is then
// said, "" if nothing is; able is false if the launcher is not installed.
type starter interface {
	start(t *testing.T, o *outcome, culprit int, environment []string) (wrong string, able bool)
}

// gocclRun is goccl run, built as a tool.
type gocclRun struct{ tool string }

func (g gocclRun) start(t *testing.T, o *outcome, culprit int, environment []string) (wrong string, able bool) {
	t.Helper()
	c := exec.Command(g.tool, "run", "-n", fmt.Sprint(failingRanks), program(t))
	c.Env = environment
	dir := o.limitTo(t, c)
	var stderr strings.Builder
	c.Stderr = &stderr
	ended := launch(t, c)
	select {
	case <-ended:
	case <-time.After(patience):
		return "goccl run does not end", true
	}
	_, text, _ := strings.Cut(stderr.String(), "goccl: error: ")
	_, cause, _ := strings.Cut(text, "\n")
	switch status := c.ProcessState.ExitCode(); {
	case status != o.status:
		return fmt.Sprintf("the exit status is %d, want %d\n%s", status, o.status, text), true
	case !o.saysOf(t, text, culprit, dir):
		return fmt.Sprintf("want the headline %s\n%s", o.headline, text), true
	case strings.Count(cause, "\n") > 15:
		return "the error is long\n" + text, true
	}
	for _, line := range o.cause {
		if !says(cause, line, culprit) {
			return fmt.Sprintf("want %s\n%s", line, text), true
		}
	}
	return "", true
}

// torchrun sets torchrun's variables, and evaluates the error files as torchrun does.
type torchrun struct{}

func (torchrun) start(t *testing.T, o *outcome, culprit int, environment []string) (wrong string, able bool) {
	t.Helper()
	dir, id := t.TempDir(), fmt.Sprintf("outcomes-%d-%d", os.Getpid(), jobs.Add(1))
	file := func(rank int) string { return filepath.Join(dir, fmt.Sprint(rank)) }
	ranks, ended := make([]*exec.Cmd, failingRanks), make([]<-chan struct{}, failingRanks)
	failed := make(chan struct{}, failingRanks)
	for rank := range ranks {
		c := exec.Command("/proc/self/exe")
		c.Env = append(slices.Clone(environment), fmt.Sprint("RANK=", rank), fmt.Sprint("LOCAL_RANK=", rank),
			fmt.Sprint("WORLD_SIZE=", failingRanks), fmt.Sprint("LOCAL_WORLD_SIZE=", failingRanks),
			"MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID="+id, "TORCHELASTIC_RESTART_COUNT=0",
			"TORCHELASTIC_ERROR_FILE="+file(rank))
		if rank == culprit {
			o.limitTo(t, c)
		}
		ranks[rank], ended[rank] = c, launch(t, c)
		go func() {
			if <-ended[rank]; !c.ProcessState.Success() {
				failed <- struct{}{}
			}
		}()
	}
	select {
	case <-failed:
	case <-time.After(patience):
		return "no rank fails", true
	}
	time.Sleep(100 * time.Millisecond) // torchrun looks that often
	report, earliest := "", int64(0)
	for rank, c := range ranks {
		select {
		case <-ended[rank]:
		default:
			continue
		}
		if c.ProcessState.Success() {
			continue
		}
		message, at := torchError(t, file(rank))
		if report == "" || at < earliest {
			report, earliest = fmt.Sprintf("rank %d, status %d: %s", rank, torchStatus(c.ProcessState), message), at
		}
	}
	if !says(report, o.torchrun, culprit) && !says(report, o.last, culprit) { // another rank may have been seen first
		return fmt.Sprintf("want %s, or %s\n%s", o.torchrun, o.last, report), true
	}
	return "", true
}

// limitTo makes a command run in the control group of the outcome, if that limits all of it.
func (o *outcome) limitTo(t *testing.T, c *exec.Cmd) (dir string) {
	t.Helper()
	if o.group == "memory" {
		dir = inGroup(t, c, o.group, o.limit)
	}
	return dir
}

// saysOf reports whether what goccl run says of a job in a control group has the headline. If the kernel has killed several ranks there,
// one after another before the memory of the first was free, it has their reason, and the culprit is one of them.
func (o *outcome) saysOf(t *testing.T, text string, culprit int, dir string) bool {
	t.Helper()
	headline, _, _ := strings.Cut(text, "\n")
	if dir == "" || killedIn(t, dir) < 2 {
		return says(headline, o.headline, culprit)
	}
	_, reason, _ := strings.Cut(o.headline, "(killed)")
	killed := regexp.MustCompile(fmt.Sprintf(`ranks? (\d+, )*%d\b.*SIGKILL \(killed\)`, culprit))
	return says(headline, reason, culprit) && killed.MatchString(text)
}

// torchError returns the message and the time, in seconds, of a rank that has failed. Of one without a file it is
// now.
func torchError(t *testing.T, file string) (message string, at int64) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", time.Now().Unix()
	}
	var got struct {
		Message struct {
			ExtraInfo struct {
				Stack string `json:"py_callstack"` // shown instead of the message
				Time  int64  `json:"timestamp,string"`
			}
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	return got.Message.ExtraInfo.Stack, got.Message.ExtraInfo.Time
}

// torchStatus is an exit status as Python counts it: of a signal, its number below zero.
func torchStatus(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return -int(w.Signal())
	}
	return state.ExitCode()
}

// mpirun is Open MPI's, which lets other ranks end by themselves.
type mpirun struct{}

func (mpirun) start(t *testing.T, o *outcome, culprit int, environment []string) (wrong string, able bool) {
	t.Helper()
	command, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		return "", false
	}
	dir := t.TempDir()
	c := exec.Command(command, "--allow-run-as-root", "--oversubscribe", "--enable-recovery", "--mca", "orte_abort_on_non_zero_status", "0",
		"-n", fmt.Sprint(failingRanks), "/bin/sh", "-c", `exec "$0" 2>"$1/$OMPI_COMM_WORLD_RANK"`, program(t), dir)
	c.Env = environment
	o.limitTo(t, c)
	ended := launch(t, c)
	if o.failure == "hang" {
		ended = nil // after the rank that hangs
	}
	// Every other rank writes its last line, sooner or later.
	for late, look := time.After(patience), time.Tick(20*time.Millisecond); ; {
		if wrong = o.lastLines(dir, culprit); wrong == "" {
			return "", true
		}
		select {
		case <-look:
		case <-ended:
			return o.lastLines(dir, culprit), true
		case <-late:
			return wrong, true
		}
	}
}

// lastLines returns what is wrong with the last lines of the other ranks.
func (o *outcome) lastLines(dir string, culprit int) (wrong string) {
	for rank := range failingRanks {
		if rank == culprit {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(rank)))
		lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		if last := lines[len(lines)-1]; err != nil || !says(last, o.last, culprit) {
			wrong += fmt.Sprintf("\nrank %d: want %s, got %s", rank, o.last, text)
		}
	}
	return wrong
}

// launch starts a command, which is killed at the end of the test if it has not ended by then, with all its
// process group, and returns a channel that is closed when it has ended.
func launch(t *testing.T, c *exec.Cmd) <-chan struct{} {
	t.Helper()
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait()
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(patience):
			_ = c.Process.Kill()
			<-ended
		}
	})
	return ended
}

// program is the path of this program.
func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
