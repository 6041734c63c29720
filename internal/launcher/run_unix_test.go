//go:build unix

package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/screen"
)

func init() {
	programs["environment"] = func([]string) {
		var line []string
		for _, v := range os.Environ() {
			name, _, _ := strings.Cut(v, "=")
			if strings.Contains(name, "RANK") || strings.HasSuffix(name, "WORLD_SIZE") || strings.HasPrefix(name, "GOCCL_SHM") || name == "ORDINARY" {
				line = append(line, v)
			}
		}
		fmt.Println(strings.Join(line, " "))
		fmt.Fprintln(os.Stderr, "a word for standard error")
	}
	programs["cat"] = func([]string) {
		text, err := io.ReadAll(os.Stdin)
		fmt.Printf("read %q, %v", text, err) // a last line without an end
	}
	// Writes lines in pieces of one byte.
	programs["pieces"] = func(args []string) {
		for range number(args[0]) {
			for _, c := range []byte("a line of rank " + os.Getenv("RANK") + "\n") {
				if _, err := os.Stdout.Write([]byte{c}); err != nil {
					panic(err)
				}
			}
		}
	}
	programs["long"] = func(args []string) { fmt.Println(strings.Repeat(os.Getenv("RANK"), number(args[0]))) }
	// Rank 1 fails when a gate opens; the others stay.
	programs["failing"] = func(args []string) {
		if os.Getenv("RANK") != "1" {
			stay()
		}
		for i := range 12 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		waitForFile(args[0])
		os.Exit(3)
	}
	programs["crash"] = func([]string) {
		go func() { crash3([]int{1, 2, 3}) }()
		select {}
	}
	programs["abort"] = func([]string) {
		if os.Getenv("RANK") != "1" {
			stay()
		}
		signal.Reset()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	}
	programs["orderly"] = func([]string) {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, Signals...)
		fmt.Println("up")
		fmt.Println("got", <-asked)
	}
	programs["signaled"] = func([]string) {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, userSignals...)
		fmt.Println("up")
		for range userSignals {
			fmt.Println("got", <-signals)
		}
	}
	// Shows progress, until a gate opens.
	programs["progress"] = func(args []string) {
		fmt.Print("loading\n10%\r20%\r30%")
		waitForFile(args[0])
		fmt.Print("done\r\n")
	}
	// Starts one of the programs in its own group, and waits for it as `go run` does,
	// or not.
	programs["parent"] = func(args []string) {
		child := command(args[1:]...)
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		if args[0] == "waits" {
			_ = child.Wait()
		}
	}
	programs["daemon"] = func(args []string) {
		child := command(args...)
		child.Stdout = os.Stdout
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Println("daemon", child.Process.Pid)
	}
	programs["group"] = func([]string) {
		group, err := syscall.Getpgid(0)
		fmt.Println(group == os.Getpid(), err)
	}
}

func crash3(v []int) int { return v[len(v)+2] }

// waitForFile opens a FIFO, which waits for the other side.
func waitForFile(fifo string) {
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	f.Close()
}

// gate is a FIFO at which programs wait, and a function that opens it.
func gate(t *testing.T) (fifo string, open func()) {
	fifo = filepath.Join(t.TempDir(), "gate")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	return fifo, func() {
		f, err := os.OpenFile(fifo, os.O_RDONLY, 0)
		require.NoError(t, err)
		f.Close()
	}
}

// run runs a job that succeeds and returns its output.
func run(t *testing.T, job *Spec) (out, err *screen.Screen) {
	t.Helper()
	out, err = screen.New(), screen.New()
	job.Stdout, job.Stderr = out, err
	require.NoError(t, runError(job))
	return out, err
}

func sortedLines(s *screen.Screen) []string {
	return slices.Sorted(strings.Lines(s.String()))
}

// Every rank has its own number, the same key, and no variables of an outer launcher.
func TestRanks(t *testing.T) {
	t.Setenv("ORDINARY", "stays")
	t.Setenv("OMPI_COMM_WORLD_RANK", "7")
	t.Setenv("GOCCL_SHM_RANK", "7")
	t.Setenv("RANK", "7")
	keys := map[string]bool{}
	for range 2 {
		out, stderr := run(t, testJob(2, "environment"))
		var key string
		for i, line := range sortedLines(out) {
			m := regexp.MustCompile(`^\[(\d)\] ORDINARY=stays GOCCL_SHM_NAME=(/goccl-[0-9a-f]{16}) GOCCL_SHM_SECRET=([A-Z2-7]{26}) GOCCL_SHM_RANK=(\d) GOCCL_SHM_SIZE=2 RANK=(\d) WORLD_SIZE=2 LOCAL_RANK=(\d) LOCAL_WORLD_SIZE=2\n$`).FindStringSubmatch(line)
			require.NotNil(t, m, line)
			for _, rank := range []int{1, 4, 5, 6} {
				require.Equal(t, fmt.Sprint(i), m[rank])
			}
			require.Contains(t, []string{"", m[2] + m[3]}, key)
			key = m[2] + m[3]
			require.False(t, keys[m[3]] && i == 0, "a secret was used again")
			keys[m[3]] = true
		}
		require.False(t, keys[key], "a key was used again")
		keys[key] = true
		require.Equal(t, []string{"[0] a word for standard error\n", "[1] a word for standard error\n"}, sortedLines(stderr))
	}
}

// Rank 0 has the standard input, the others' is empty. An incomplete last line is not lost.
func TestStandardInput(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = w.WriteString("some text")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	job := testJob(2, "cat")
	job.Stdin = r
	out, _ := run(t, job)
	require.NoError(t, r.Close())
	require.Equal(t, []string{`[0] read "some text", <nil>` + "\n", `[1] read "", <nil>` + "\n"}, sortedLines(out))
}

// Lines that ranks write at the same time, in pieces, come out whole.
func TestTornLines(t *testing.T) {
	const ranks, lines = 3, 100
	out, _ := run(t, testJob(ranks, "pieces", fmt.Sprint(lines)))
	count := map[string]int{}
	for line := range strings.Lines(out.String()) {
		count[line]++
	}
	want := map[string]int{}
	for i := range ranks {
		want[fmt.Sprintf("[%d] a line of rank %d\n", i, i)] = lines
	}
	require.Equal(t, want, count)
}

// A line that is longer than a pipe and the longest line is not lost.
func TestLongLinesOfRanks(t *testing.T) {
	out, _ := run(t, testJob(2, "long", fmt.Sprint(maxLine+10)))
	var want []string
	for i := range 2 {
		digit := fmt.Sprint(i)
		want = append(want, "["+digit+"] "+strings.Repeat(digit, 10)+"\n", "["+digit+"] "+strings.Repeat(digit, maxLine)+"\n")
	}
	slices.Sort(want)
	require.True(t, slices.Equal(want, sortedLines(out)))
}

func TestQuietWithoutPrefix(t *testing.T) {
	job := testJob(3, "echo", "hello")
	job.Quiet = true
	out, _ := run(t, job)
	require.Equal(t, "[0] hello\n", out.String())
	job = testJob(2, "echo", "hello")
	job.NoPrefix = true
	out, _ = run(t, job)
	require.Equal(t, "hello\nhello\n", out.String())
}

// The output of quiet ranks is kept for the error.
func TestQuietFailure(t *testing.T) {
	fifo, open := gate(t)
	job := testJob(2, "failing", fifo)
	job.Quiet = true
	r := start(job)
	r.out.Await(t, "[0] up\n", 1)
	open()
	e := r.failure(t)
	require.Equal(t, "line 11", e.Output[9])
	require.Empty(t, r.err.String())
}

// Files replace the outputs, byte by byte. Files of another run are kept.
func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "run")
	job := testJob(2, "cat")
	job.Files.Directory = dir
	out, stderr := run(t, job)
	require.Empty(t, out.String()+stderr.String())
	for name, want := range map[string]string{"rank-0.out": `read "", <nil>`, "rank-1.out": `read "", <nil>`, "rank-0.err": "", "rank-1.err": ""} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}

	require.NoError(t, os.Remove(filepath.Join(dir, "rank-0.out")))
	var refused *RefusedError
	require.ErrorAs(t, runError(job), &refused)
	require.Equal(t, 2, refused.ExitCode())
	require.ErrorIs(t, refused, os.ErrExist)
	require.Contains(t, refused.Error(), "rank-0.err")
	require.NoFileExists(t, filepath.Join(dir, "rank-0.out"), "it was made by a job that did not begin")
	require.FileExists(t, filepath.Join(dir, "rank-0.err"))

	fifo, open := gate(t)
	job = testJob(2, "failing", fifo)
	job.Files.Directory = t.TempDir()
	r := start(job)
	open()
	require.Equal(t, "line 11", r.failure(t).Output[9])
}

// Files that are written beside the outputs have the same bytes, without prefixes.
func TestTee(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "run")
	job := testJob(2, "cat")
	job.Files, job.Timestamps = Files{Directory: dir, Beside: true}, true
	out, stderr := run(t, job)
	require.Empty(t, stderr.String())
	require.Regexp(t, `(?m)^\d\d:\d\d:\d\d\.\d{3} \[0\] read "", <nil>$`, out.String())
	for name, want := range map[string]string{"rank-0.out": `read "", <nil>`, "rank-1.out": `read "", <nil>`, "rank-0.err": "", "rank-1.err": ""} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	var refused *RefusedError
	require.ErrorAs(t, runError(job), &refused)
	require.ErrorIs(t, refused, os.ErrExist)
}

// A file that cannot be written does not stop the output that is shown beside it: the launcher warns
// once. In place of that output it is an error of a job that succeeds otherwise.
func TestLostFiles(t *testing.T) {
	f, err := newFile(filepath.Join(t.TempDir(), "closed"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	job := testJob(2, "cat")
	var shown bytes.Buffer
	both := newOutput(new(cursor), &shown)
	l := &launcher{Spec: job, attempt: newAttempt(&Restarts{}), failure: failure{seen: -1}, ranks: make([]rank, 2), outputs: [2]*output{both, both}}
	require.NoError(t, l.jobError())
	s := &l.ranks[1].streams[0]
	var lost []error
	s.out, s.file = both, &rankFile{File: f, lose: func(err error) { lost = append(lost, err) }}
	s.write([]byte("one\n"))
	s.write([]byte("two\n"))
	require.Equal(t, "one\ntwo\n", shown.String())
	require.NoError(t, l.jobError())
	require.Len(t, lost, 2, "it is tried again")
	require.ErrorIs(t, lost[1], os.ErrClosed)

	s.file.lose = nil
	s.write([]byte("three\n"))
	s.write([]byte("four\n"))
	require.Equal(t, "one\ntwo\nthree\nfour\n", shown.String())
	require.ErrorIs(t, l.jobError(), os.ErrClosed)
	require.ErrorContains(t, l.jobError(), "--output: ")

	// Beside a rank that fails it is an error as well.
	l.failure = failure{seen: 1, cause: CauseFailed, blamed: []int{1}}
	require.ErrorIs(t, l.jobError(), os.ErrClosed)
	ended, isEnded := errors.AsType[*EndedError](l.jobError())
	require.True(t, isEnded)
	require.Equal(t, 1, ended.First)
}

// A crash in a goroutine of its own is shown by its message, functions and start, also through `go
// run`, which prints the status and has another.
func TestCrashText(t *testing.T) {
	for _, through := range []bool{false, true} {
		job := testJob(1, "crash")
		if through {
			job.Program, job.Args = "/bin/sh", append([]string{"sh", "-c", `"$0" "$@" || { echo exit status $? >&2; exit 1; }`, self()}, job.Args[1:]...)
		}
		e := start(job).failure(t)
		require.Regexp(t, `: exit status [12]
  panic: runtime error: index out of range \[5\] with length 3
    in launcher\.crash3 at run_unix_test\.go:\d+
    in launcher\.init\.\S+ at run_unix_test\.go:\d+
    in goroutine \d+, started in launcher\.init\.\S+ at run_unix_test\.go:\d+$`, e.Error())
	}
}

// The first rank that fails ends the others, and its error is the job's.
func TestFirstFailure(t *testing.T) {
	fifo, open := gate(t)
	r := start(testJob(4, "failing", fifo))
	r.out.Await(t, "up\n", 3)
	open()
	e := r.failure(t)
	require.Equal(t, 1, e.First)
	require.Equal(t, 3, e.ExitCode())
	require.Regexp(t, `^rank 1 \(pid \d+\) was the first to fail, after [0-9.]+m?s: exit status 3
  the last that it wrote to standard error:
    line 2
    line 3
    line 4
    line 5
    line 6
    line 7
    line 8
    line 9
    line 10
    line 11
  ranks 0, 2, 3: ended by SIGTERM$`, e.Error())
}

func TestDeathBySignal(t *testing.T) {
	e := start(testJob(2, "abort")).failure(t)
	require.Equal(t, 1, e.First)
	require.Equal(t, 137, e.ExitCode())
	require.Contains(t, e.Error(), ": SIGKILL (killed)")
	require.Equal(t, "exit status 137 (128 + SIGKILL)", Rank{Exit: 137}.How())
	require.Equal(t, "exit status 255", Rank{Exit: 255}.How())
	require.Equal(t, "exit status 128", Rank{Exit: 128}.How())
}

// A rank that ends with 0 does not end the others; one that Run ended is not a failure of its own.
func TestStatus(t *testing.T) {
	require.NoError(t, runError(testJob(3, "exit", "1", "0")))
	e := start(testJob(3, "exit", "2", "77")).failure(t)
	require.Equal(t, 2, e.First)
	require.Equal(t, 77, e.ExitCode())
}

// Ranks that ignore SIGTERM are killed when the grace period is over.
func TestGrace(t *testing.T) {
	job := testJob(2, "stubborn")
	job.Grace = 20 * time.Millisecond
	r := start(job)
	r.out.Await(t, "up\n", 2)
	r.signals <- syscall.SIGTERM
	e := r.failure(t)
	require.Equal(t, 143, e.ExitCode())
	require.Regexp(t, `^SIGTERM came after .*\n  ranks 0, 1: killed at the end of the grace period of 20ms$`, e.Error())
}

// Signals are forwarded unchanged. A rank that ends with 0 then has not failed,
// but the job was ended by the signal.
func TestSignals(t *testing.T) {
	for _, s := range endSignals {
		r := start(testJob(2, "orderly"))
		r.out.Await(t, "up\n", 2)
		r.signals <- s
		e := r.failure(t)
		require.Equal(t, 128+int(s.(syscall.Signal)), e.ExitCode())
		require.Equal(t, -1, e.First)
		r.out.Await(t, fmt.Sprintf("got %v\n", s), 2)
	}
}

// piped makes all ranks of a job programs of a pipe, whose status is that of cat.
func piped(job *Spec) *Spec {
	job.Program, job.Args = "/bin/sh", append([]string{"sh", "-c", `"$0" "$@" | cat`, self()}, job.Args[1:]...)
	return job
}

// The signals of users are passed on to the programs that handle them, and to no other, such as cat,
// which would die of them. The job goes on.
func TestUserSignals(t *testing.T) {
	r := start(piped(testJob(2, "signaled")))
	r.out.Await(t, "up\n", 2)
	r.signals <- syscall.SIGUSR1
	r.out.Await(t, "got user defined signal 1\n", 2)
	r.signals <- syscall.SIGUSR2
	r.out.Await(t, "got user defined signal 2\n", 2)
	require.NoError(t, <-r.ended)
}

// What a rank writes over and over, and a line that it does not end, are shown while it runs.
func TestProgress(t *testing.T) {
	fifo, open := gate(t)
	r := start(testJob(1, "progress", fifo))
	r.out.Await(t, "[0] loading\n[0] 10%\r[0] 20%\r[0] 30%\n", 1)
	open()
	require.NoError(t, <-r.ended)
	require.True(t, strings.HasSuffix(r.out.String(), "\n[0] done\r\n"), r.out)
}

// A second interrupt kills without a grace period.
func TestSecondInterrupt(t *testing.T) {
	r := start(testJob(2, "stubborn")) // with a minute of grace
	r.out.Await(t, "up\n", 2)
	r.signals <- syscall.SIGINT
	r.signals <- syscall.SIGINT
	e := r.failure(t)
	require.Equal(t, 130, e.ExitCode())
	require.Equal(t, syscall.SIGKILL, e.Ranks[0].Signal)
	require.Regexp(t, `\n  ranks 0, 1: killed by the second interrupt$`, e.Error())
}

// After that the launcher ends, even if its output is not read.
func TestStuckOutput(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	job := testJob(1, "long", fmt.Sprint(1<<20))
	signals := make(chan os.Signal)
	job.Stdout, job.Stderr, job.Signals = w, w, signals
	ended := make(chan error, 1)
	go func() { ended <- runError(job) }()
	_, err = r.Read(make([]byte, 1)) // the rank writes
	require.NoError(t, err)
	for range 3 {
		signals <- syscall.SIGINT
	}
	var e *EndedError
	require.ErrorAs(t, <-ended, &e)
	require.Equal(t, 130, e.ExitCode())
	require.NoError(t, w.Close())
}

func TestOwnGroups(t *testing.T) {
	out, _ := run(t, testJob(2, "group"))
	require.Equal(t, []string{"[0] true <nil>\n", "[1] true <nil>\n"}, sortedLines(out))
}

// Descendants of ranks get the signals, too, and are killed with them.
func TestGrandchildren(t *testing.T) {
	r := start(testJob(2, "parent", "waits", "orderly"))
	r.out.Await(t, "up\n", 2)
	r.signals <- syscall.SIGTERM
	r.failure(t)
	r.out.Await(t, "got terminated\n", 2) // though its parent has ended at once

	job := testJob(2, "parent", "waits", "stubborn")
	job.Grace = 20 * time.Millisecond
	r = start(job)
	r.out.Await(t, "up\n", 2)
	r.signals <- syscall.SIGTERM
	r.failure(t) // which comes when its outputs are closed
}

// Processes that a rank leaves behind get SIGTERM, and are killed if they ignore it, with a warning.
func TestLeftBehind(t *testing.T) {
	for how, grace := range map[string]time.Duration{"stay": time.Minute, "stubborn": 20 * time.Millisecond} {
		job := testJob(2, "parent", "does not", how)
		job.Grace = grace
		outcome, err := job.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, "ranks 0, 1: "+withRest, outcome.Warning)
	}
}

const withRest = "exit status 0; other processes of its group still ran, and were ended (in a shell, see exec and wait)"

// A process that leaves the group is not waited for, even if it holds the
// output.
func TestDaemon(t *testing.T) {
	out, _ := run(t, testJob(1, "daemon", "sleep"))
	var pid int
	_, err := fmt.Sscanf(regexp.MustCompile(`daemon \d+`).FindString(out.String()), "daemon %d", &pid)
	require.NoError(t, err)
	kill(t, pid)
}

// The contents of a pipe are read when all ranks are dead, even if other writers remain.
func TestRestOfPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	text := strings.Repeat("0123456789abcde\n", 50<<10/16) // less than a pipe holds, more than one read
	_, err = w.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, r.SetReadDeadline(time.Now()))
	var shown bytes.Buffer
	s := linesTo(&shown)
	s.prefix = ""
	s.readFrom(r)
	require.Equal(t, text, shown.String())
}

func TestManyRanks(t *testing.T) {
	out, _ := run(t, testJob(64, "echo", "here"))
	for i := range 64 {
		require.Contains(t, out.String(), fmt.Sprintf("[%2d] here\n", i))
	}
}

// A program that is not executable has the exit status of shells.
func TestNotExecutable(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	for text, status := range map[string]int{"no program": 126, "#!/no/such/interpreter": 127} {
		require.NoError(t, os.WriteFile(script, []byte(text), 0o700))
		job := testJob(1)
		job.Program = script
		e := start(job).failure(t)
		require.Equal(t, status, e.ExitCode())
		require.Contains(t, e.Error(), "goccl: "+script+" cannot be executed: ")
	}
}
