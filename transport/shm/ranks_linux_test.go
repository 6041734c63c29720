package shm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// The test binary also runs ranks as separate processes: if this variable is set it plays the rankSpec
// in it instead of running tests.
const rankVariable = "TEST_GOCCL_SEGMENT_RANK"

type rankSpec struct {
	Dir     string
	Job     Job
	Bytes   int
	Stop    string        // the point of openSegment at which the rank stops until the test lets it go on
	Then    string        // a later such point
	Files   int           // nonzero: the rank can open no files from Stop on
	Timeout time.Duration // of openSegment; counted from Stop if that is set
	Cancel  bool          // Timeout cancels the context instead of being its deadline
	Groups  uint64        // if nonzero, the rank only forms that many groups
	Region  bool          // the rank only makes a region
}

// rankResult describes what openSegment returned on a rank.
type rankResult struct {
	Err               string
	Lost              *transport.PeerLostError
	Late              *transport.TimeoutError
	AbortedBy         *int
	Requested         int // of an *AllocationFailedError
	Cancelled         bool
	Zero              bool // the arena is all zero and aligned
	Files, Goroutines int  // how many more than before
	Elapsed           time.Duration
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(rankVariable); spec != "" {
		playRank(spec)
		return
	}
	os.Exit(m.Run())
}

func playRank(text string) {
	var spec rankSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		panic(err)
	}
	directory = spec.Dir
	in := bufio.NewScanner(os.Stdin)
	if spec.Groups > 0 {
		playGroups(spec, in)
		return
	}
	if spec.Region {
		playRegion(spec, in)
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	end := func() {
		if spec.Cancel {
			cancel(nil)
		} else {
			cancel(context.DeadlineExceeded)
		}
	}
	if spec.Stop == "" {
		time.AfterFunc(spec.Timeout, end)
	}
	restore, stopped := func() {}, false
	atPoint = func(point string) {
		fmt.Println("at", point)
		if point == spec.Stop && !stopped {
			stopped = true
			if !in.Scan() {
				os.Exit(3)
			}
			time.AfterFunc(spec.Timeout, end)
			if spec.Files > 0 {
				restore = limitFiles()
			}
		}
		if point == spec.Then && !in.Scan() {
			os.Exit(3)
		}
	}
	_, _ = startOf(os.Getpid()) // makes the runtime open its own files before they are counted
	files, goroutines := openFiles(), runtime.NumGoroutine()
	start := time.Now()
	s, err := openSegment(ctx, spec.Job, spec.Bytes)
	restore()
	result := rankResult{Elapsed: time.Since(start), Files: openFiles() - files}
	// The goroutine that ended ctx may still be returning.
	for limit := time.Now().Add(time.Second); ; runtime.Gosched() {
		result.Goroutines = runtime.NumGoroutine() - goroutines
		if result.Goroutines <= 0 || time.Now().After(limit) {
			break
		}
	}
	if err != nil {
		result.Err = err.Error()
		result.Cancelled = errors.Is(err, context.Canceled)
		errors.As(err, &result.Lost)
		errors.As(err, &result.Late)
		if aborted := (*transport.AbortedError)(nil); errors.As(err, &aborted) {
			result.AbortedBy = &aborted.By
		}
		if failed := (*transport.AllocationFailedError)(nil); errors.As(err, &failed) {
			result.Requested = failed.RequestedBytes
		}
		reply("result", result)
		return
	}
	result.Zero = uintptr(s.base)%128 == 0 && s.size == spec.Bytes
	for _, b := range s.bytes(0, s.size) {
		result.Zero = result.Zero && b == 0
	}
	reply("result", result)
	for in.Scan() {
		switch in.Text() {
		case "store": // in this rank's own word
			at[interleave.Uint64](s.arena, s.size-8*(s.rank+1)).Store(uint64(100 + s.rank))
			reply("stored", true)
		case "load":
			words := make([]uint64, spec.Job.Size)
			for rank := range words {
				words[rank] = at[interleave.Uint64](s.arena, s.size-8*(rank+1)).Load()
			}
			reply("loaded", words)
		case "alive":
			alive := make([]bool, spec.Job.Size)
			for rank := range alive {
				alive[rank] = s.isAlive(rank)
			}
			reply("alive", alive)
		case "pids":
			pids := make([]int, spec.Job.Size)
			for rank := range pids {
				pids[rank] = s.pid(rank)
			}
			reply("pids", pids)
		case "close":
			if err := errors.Join(s.close(), s.close()); err != nil {
				panic(err)
			}
			reply("closed", openFiles()-files)
		}
	}
}

// limitFiles keeps this process from opening files until restore is called.
func limitFiles() (restore func()) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		panic(err)
	}
	none := unix.Rlimit{Max: limit.Max} // open files stay open
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		panic(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			panic(err)
		}
	}
}

func reply(what string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	fmt.Println(what, string(b))
}

func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(entries)
}

// rank is a rank in a separate process.
type rank struct {
	t     *testing.T
	spec  rankSpec
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	seen  []string
}

// atOnce is more than any machine needs for an error that no timeout causes, and far less than the timeout of a minute.
const atOnce = 20 * time.Second

// startRank starts a rank. The end of the test kills it if it still runs. A timeout of zero means a
// minute.
func startRank(t *testing.T, spec rankSpec, change ...func(*exec.Cmd)) *rank {
	t.Helper()
	spec.Dir = directory
	if spec.Bytes == 0 {
		spec.Bytes = 1 << 16
	}
	if spec.Timeout == 0 {
		spec.Timeout = time.Minute
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), rankVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	for _, c := range change {
		c(cmd)
	}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	r := &rank{t: t, spec: spec, cmd: cmd, in: in, lines: make(chan string, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		<-done
		_ = cmd.Wait()
	})
	return r
}

// await waits for a line that starts with a word, and returns the rest of the line.
func (r *rank) await(word string) string {
	r.t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-r.lines:
			if !ok {
				r.t.Fatalf("rank %d has ended without %q; it printed %q", r.spec.Job.Rank, word, r.seen)
			}
			r.seen = append(r.seen, line)
			if rest, ok := strings.CutPrefix(line, word+" "); ok || line == word {
				return rest
			}
		case <-limit.C:
			r.t.Fatalf("rank %d does not print %q; it printed %q", r.spec.Job.Rank, word, r.seen)
		}
	}
}

// ask sends the rank a command, and returns its answer, which follows a word.
func ask[T any](r *rank, question, word string) (answer T) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, question+"\n"); err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(r.await(word)), &answer); err != nil {
		r.t.Fatal(err)
	}
	return answer
}

func (r *rank) goOn() {
	r.t.Helper()
	if _, err := io.WriteString(r.in, "go on\n"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rank) result() (result rankResult) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.await("result")), &result); err != nil {
		r.t.Fatal(err)
	}
	if result.Err != "" && (result.Files != 0 || result.Goroutines != 0) {
		r.t.Errorf("rank %d has %d open files and %d goroutines more than before, after %q", r.spec.Job.Rank, result.Files, result.Goroutines, result.Err)
	}
	return result
}

// joined fails the test unless the rank has succeeded.
func (r *rank) joined() {
	r.t.Helper()
	if got := r.result(); got.Err != "" || !got.Zero || got.Files != 1 {
		r.t.Fatalf("rank %d: %+v, want success, an arena of zeros and one open file", r.spec.Job.Rank, got)
	}
}

func (r *rank) pid() int { return r.cmd.Process.Pid }

// kill ends the rank by SIGKILL and waits for it.
func (r *rank) kill() {
	r.t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		r.t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := r.cmd.Wait(); !errors.As(err, &exit) {
		r.t.Fatalf("killed: %v", err)
	}
}
