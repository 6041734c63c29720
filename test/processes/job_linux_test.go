package processes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take before a test fails for a hang.
const patience = 30 * time.Second

var jobs atomic.Int64

// A job is a set of ranks that are processes.
type job struct {
	t     *testing.T
	name  string
	tcp   []string // variables of ranks that TCP connects; nil: they share memory
	ranks []*rank
}

type rank struct {
	job    *job
	number int
	cmd    *exec.Cmd
	in     io.WriteCloser
	points chan string // where a rank that talks is, in order
	result chan report
	stderr strings.Builder
}

// A report is a rank's result, when it came and how the process ended.
type report struct {
	result
	at   time.Time
	exit error
	ok   bool // it has a result
}

// start starts a job of that many ranks, which are killed at the end of the test if they
// have not ended by then. change adapts the part of a rank.
func start(t *testing.T, ranks int, p part, change func(rank int, p *part)) *job {
	t.Helper()
	j := &job{t: t, name: fmt.Sprintf("processtest-%d-%d", os.Getpid(), jobs.Add(1))}
	if *byTCP || strings.HasPrefix(t.Name(), "TestByTCP/") {
		j.tcp = []string{"GOCCL_TRANSPORT=tcp", "GOCCL_RESULT_FILE=" + filepath.Join(t.TempDir(), "result")}
	}
	for number := range ranks {
		mine := p
		if change != nil {
			change(number, &mine)
		}
		j.ranks = append(j.ranks, j.start(number, ranks, mine))
	}
	return j
}

func (j *job) start(number, size int, p part) *rank {
	text, err := json.Marshal(p)
	if err != nil {
		j.t.Fatal(err)
	}
	r := &rank{job: j, number: number, points: make(chan string, 1<<10), result: make(chan report, 1)}
	r.cmd = exec.Command("/proc/self/exe")
	r.cmd.Env = append(clean(os.Environ()), partVariable+"="+string(text), "GOCCL_SHM_NAME=/"+j.name,
		fmt.Sprint("GOCCL_SHM_RANK=", number), fmt.Sprint("GOCCL_SHM_SIZE=", size), fmt.Sprint("GROUP_RANK=", number / *perNode))
	r.cmd.Env = append(r.cmd.Env, j.tcp...)
	r.cmd.Stderr = &r.stderr
	// In a process group of its own: Linux continues stopped processes whose group becomes orphaned,
	// as that of a job in the background does when its shell exits.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	in, err1 := r.cmd.StdinPipe()
	out, err2 := r.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, r.cmd.Start()); err != nil {
		j.t.Fatal(err)
	}
	r.in = in
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.listen(out)
	}()
	j.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		for range r.points { // so that listen does not block on them
		}
		<-ended
		_ = in.Close()
	})
	return r
}

// listen reads what a rank prints until it ends.
func (r *rank) listen(out io.Reader) {
	var last report
	in := bufio.NewScanner(out)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		if point, ok := strings.CutPrefix(in.Text(), "at "); ok {
			r.points <- point
		} else if text, ok := strings.CutPrefix(in.Text(), "result "); ok {
			last.at = time.Now()
			last.ok = json.Unmarshal([]byte(text), &last.result) == nil
		}
	}
	last.exit = r.cmd.Wait()
	r.result <- last
	close(r.points)
}

// clean returns the environment without the variables that identify a rank.
func clean(env []string) (kept []string) {
	for _, v := range env {
		if !strings.HasPrefix(v, "GOCCL_") {
			kept = append(kept, v)
		}
	}
	return kept
}

func (r *rank) pid() int { return r.cmd.Process.Pid }

func (r *rank) signal(s syscall.Signal) {
	r.job.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.job.t.Fatalf("rank %d: %v: %v", r.number, s, err)
	}
}

// await returns when a rank with Talks set has reached a point this many times.
func (r *rank) await(point string, times int) {
	r.job.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for seen := 0; seen < times; {
		select {
		case p, ok := <-r.points:
			if !ok {
				r.job.t.Fatalf("rank %d has ended before %s: %+v%s", r.number, point, <-r.result, r.stderr.String())
			}
			if p == point {
				seen++
			}
		case <-limit.C:
			r.job.t.Fatalf("rank %d does not come to %s", r.number, point)
		}
	}
	go func() { // no test listens any more
		for range r.points {
		}
	}()
}

// report waits for the end of a rank.
func (r *rank) report() report {
	r.job.t.Helper()
	select {
	case last := <-r.result:
		return last
	case <-time.After(patience):
		r.signal(syscall.SIGQUIT) // it writes where its goroutines are
		<-r.result
		r.job.t.Fatalf("rank %d hangs:\n%s", r.number, r.stderr.String())
		return report{}
	}
}

// sound returns the report of a rank that has to end by itself, with nothing left.
func (r *rank) sound() report {
	r.job.t.Helper()
	last := r.report()
	switch {
	case !last.ok || last.exit != nil:
		r.job.t.Fatalf("rank %d died: %v\n%s", r.number, last.exit, r.stderr.String())
	case r.job.tcp != nil && last.Point == "init" && last.Err != "":
		return last // its connections wait for another attempt
	case last.Wrong != "" || last.Files != 0 || last.Goroutines != 0 || r.stderr.Len() > 0:
		r.job.t.Errorf("rank %d at %s: wrong %q, %d files and %d goroutines more than before (%s)\n%s",
			r.number, last.Point, last.Wrong, last.Files, last.Goroutines, last.Err, r.stderr.String())
	}
	return last
}

// leavesNothing checks that the job, all ranks of which have ended, has left nothing in
// /dev/shm.
func (j *job) leavesNothing() {
	j.t.Helper()
	left, err := filepath.Glob("/dev/shm/*" + j.name + "*")
	if err != nil || len(left) > 0 {
		j.t.Errorf("left behind: %v %v", left, err)
		for _, file := range left {
			_ = os.Remove(file)
		}
	}
}

// others runs f for every rank but one at the same time.
func (j *job) others(one int, f func(*rank)) {
	var all sync.WaitGroup
	for _, r := range j.ranks {
		if r.number != one {
			all.Go(func() { f(r) })
		}
	}
	all.Wait()
}

// somewhat is a random moment, mostly short: up to a millisecond, and now and then up to
// limit.
func somewhat(random *rand.Rand, limit time.Duration) time.Duration {
	if random.IntN(2) == 0 {
		return time.Duration(random.Int64N(int64(time.Millisecond)))
	}
	return time.Duration(random.Int64N(int64(limit)))
}
