//go:build unix

package launcher

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport/shm"
)

// Run starts the job and returns when it is over: nil if all ranks have ended with
// status 0, else a *RefusedError if the job could not begin and an *EndedError if it
// has failed.
func (j *Job) Run() error {
	// The kernel kills the ranks when the thread ends that has started them, and takes
	// that for their parent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := &launcher{
		Job: j, name: newName(), secret: newSecret(), ranks: make([]rank, j.Ranks), seen: -1,
		finished: make(chan int, j.Ranks), children: make(chan child, 1),
	}
	defer l.closeFiles()
	if err := l.prepare(); err != nil {
		return &RefusedError{statusUsage, err}
	}
	err := l.startAll()
	if err != nil {
		l.end(syscall.SIGKILL)
	}
	l.watch()
	l.dismissKeeper()
	removeReports(l.name)
	_ = shm.RemoveLeftovers(l.name + "-") // what cannot be removed is for goccl doctor, which says why
	if err != nil {
		return &RefusedError{statusFailed, err}
	}
	return l.result()
}

// newName returns a name that no other job has.
func newName() string {
	key := make([]byte, 8)
	_, _ = rand.Read(key) // never fails
	return fmt.Sprintf("goccl-%x", key)
}

// newSecret returns what only the ranks of one job know, by which they know each other.
func newSecret() string { return rand.Text() }

// A launcher is a Job that runs. All of it belongs to the goroutine of Run, except
// for what is said to be others'.
type launcher struct {
	*Job
	name     string // of the job
	secret   string // of the job, too, and in no other process's arguments
	ranks    []rank
	shares   [][]int // of cores, one for each rank, or nil
	out, err *output
	program  string      // the file of this program
	null     *os.File    // the standard input of ranks that have none
	reports  string      // the directory of the ranks' reports, or "" if none can be had
	keeper   *os.Process // nil: it has ended
	names    *os.File    // what the keeper reads

	begun    time.Time
	children chan child // from the goroutine that wait starts
	finished chan int   // ranks that are over, from their goroutines
	byPID    map[int]int

	seen     int // the rank that was seen to fail first, or -1
	patience <-chan time.Time
	cause    Cause // why it failed, once ending
	blamed   []int
	reporter int
	signal   syscall.Signal // the first that came, if that came before any failure
	after    time.Duration  // when either was
	ending   bool           // the ranks were sent a signal
	killed   bool           // and it was SIGKILL
	deadline <-chan time.Time
	aborted  bool // by an interrupt after all were killed
}

// A rank is what there is of one while it runs.
type rank struct {
	Rank
	running bool
	gone    atomic.Bool // the group is empty, and its number may be another's
	over    bool        // as finished has said: gone, and all it wrote was read

	// Either files of its own, or what becomes of its two pipes.
	files   [2]*os.File
	pipes   [2]*os.File
	streams [2]stream // each belongs to the goroutine that reads its pipe, until over
	reading sync.WaitGroup
}

var streamNames = [2]string{"standard output", "standard error"}

// prepare does what can be refused before anything was started.
func (l *launcher) prepare() (err error) {
	l.byPID = make(map[int]int)
	if l.Pin {
		cores, err := usableCores()
		if err != nil {
			return err
		}
		if l.shares, err = shares(cores, l.Ranks); err != nil {
			return err
		}
	}
	if l.program, err = os.Executable(); err != nil {
		return err
	}
	if l.null, err = os.Open(os.DevNull); err != nil {
		return err
	}
	if l.Directory != "" {
		if err := l.makeFiles(); err != nil {
			return err
		}
		return nil
	}
	var mu sync.Mutex
	l.out, l.err = newOutput(&mu, l.Stdout), newOutput(&mu, l.Stderr)
	for i := range l.ranks {
		for k, o := range []*output{l.out, l.err} {
			s := &l.ranks[i].streams[k]
			if i == 0 || !l.Quiet {
				s.out = o
			}
			if !l.NoPrefix {
				s.prefix = o.prefix(i)
			}
		}
	}
	return nil
}

// makeFiles makes the ranks' files. If one cannot be made, there are none.
func (l *launcher) makeFiles() error {
	err := os.MkdirAll(l.Directory, 0o777)
	for i := range l.ranks {
		for k, ending := range []string{"out", "err"} {
			if err == nil {
				name := filepath.Join(l.Directory, fmt.Sprintf("rank-%d.%s", i, ending))
				l.ranks[i].files[k], err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o666)
			}
		}
	}
	if err == nil {
		return nil
	}
	for i := range l.ranks {
		for _, f := range l.ranks[i].files {
			if f != nil {
				err = errors.Join(err, os.Remove(f.Name()))
			}
		}
	}
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: the output of another run is kept; name another directory, or remove it", err)
	}
	return err
}

// makeReports makes the directory of reports, when there is a keeper to remove it. A job
// runs without them if that fails: the launcher then goes by the order in which ranks end.
func (l *launcher) makeReports() {
	for _, dir := range reportDirectories(l.name) {
		if os.Mkdir(dir, 0o700) == nil {
			l.reports, _ = filepath.Abs(dir) // ranks may go elsewhere
			return
		}
	}
}

// reportDirectories are where the reports of the job of that name may be, the first that can
// be made: containers often have no place to write to but the memory that ranks share.
func reportDirectories(name string) []string {
	return []string{filepath.Join(os.TempDir(), name), filepath.Join("/dev/shm", name)}
}

// removeReports removes the directory of the reports of the job of that name.
func removeReports(name string) {
	for _, dir := range reportDirectories(name) {
		_ = os.RemoveAll(dir) // what is not there is no error
	}
}

// report is the file of a rank's report.
func (l *launcher) report(i int) string { return filepath.Join(l.reports, fmt.Sprintf("rank-%d", i)) }

func (l *launcher) closeFiles() {
	files := []*os.File{l.null, l.names}
	for i := range l.ranks {
		files = append(files, l.ranks[i].files[:]...)
	}
	for _, f := range files {
		_ = f.Close() // of nothing, or of what others write
	}
}

// startAll starts the keeper and then the ranks.
func (l *launcher) startAll() error {
	l.begun = time.Now()
	if err := adoptOrphans(); err != nil {
		return err
	}
	if err := l.startKeeper(); err != nil {
		return fmt.Errorf("starting the keeper of the ranks: %w", err)
	}
	l.wait()
	l.makeReports()
	environment := withoutRanks(l.Environment)
	for i := range l.ranks {
		variables := rankVariables(l.name, l.secret, i, l.Ranks)
		if l.reports != "" {
			variables = append(variables, launchenv.ReportVariable+"="+l.report(i))
		}
		if err := l.start(i, slices.Concat(environment, variables)); err != nil {
			return fmt.Errorf("starting rank %d: %w", i, err)
		}
	}
	return nil
}

func (l *launcher) startKeeper() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	l.names = w
	// It holds nothing of the launcher's: who waits for the end of the output would
	// wait for the keeper as well.
	l.keeper, err = os.StartProcess(l.program, []string{keeperName, l.name}, &os.ProcAttr{
		Files: []*os.File{l.null, l.null, l.null, r},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	return err
}

// start starts a rank and reads its pipes.
func (l *launcher) start(i int, environment []string) error {
	r := &l.ranks[i]
	input := l.null
	if i == 0 {
		var err error
		if input, err = standardInput(l.Stdin); err != nil {
			return err
		}
		defer input.Close()
	}
	theirs := r.files
	if l.Directory == "" {
		for k := range theirs {
			var err error
			if r.pipes[k], theirs[k], err = os.Pipe(); err != nil {
				return err
			}
			defer theirs[k].Close()
		}
	}
	cores := ""
	if l.shares != nil {
		cores = formatCores(l.shares[i])
	}
	p, err := os.StartProcess(l.program, append([]string{rankName, cores, l.Program}, l.Args...), &os.ProcAttr{
		Files: []*os.File{input, theirs[0], theirs[1], l.names},
		Env:   environment,
		Sys:   rankAttributes(),
	})
	if err != nil {
		return err
	}
	r.PID, r.running, l.byPID[p.Pid] = p.Pid, true, i
	_ = p.Release() // wait waits for it
	for k, pipe := range r.pipes {
		if pipe != nil {
			r.reading.Go(func() { r.streams[k].readFrom(pipe) })
		}
	}
	return nil
}

// A child is a process that has ended: a rank, the keeper or an orphan.
type child struct {
	pid    int
	status syscall.WaitStatus
	err    error
}

// wait sends the next child that ends. At most one such goroutine is there, so that
// none is left when the launcher wants to hear of no more.
func (l *launcher) wait() {
	go func() {
		var c child
		for c.err = syscall.EINTR; errors.Is(c.err, syscall.EINTR); {
			c.pid, c.err = syscall.Wait4(-1, &c.status, 0, nil)
		}
		l.children <- c
	}()
}

// watch returns when all ranks that were started are over.
func (l *launcher) watch() {
	left := len(l.byPID)
	for left > 0 && !l.aborted {
		select {
		case c := <-l.children:
			if c.err != nil {
				continue // no children: the last ranks are about to be finished
			}
			l.wait()
			if l.keeper != nil && c.pid == l.keeper.Pid {
				l.keeper = nil // somebody has killed it
			} else if i, ok := l.byPID[c.pid]; ok {
				l.ended(i, c.status)
			}
		case i := <-l.finished:
			l.ranks[i].over = true
			left--
		case s := <-l.Signals:
			l.interrupted(s.(syscall.Signal))
		case <-l.patience:
			l.conclude(true)
		case <-l.deadline:
			l.end(syscall.SIGKILL)
		}
	}
}

// patience is how long a rank that is to blame may take to end by itself, once others have
// ended because of it: its own end, and what it writes, say most.
const patience = 500 * time.Millisecond

// conclude ends the job once a rank has failed and all that are to blame have ended, or
// when there was time enough for it. What ranks report from then on is because of that.
func (l *launcher) conclude(now bool) {
	if l.seen < 0 || l.ending {
		return
	}
	ranks := make([]Rank, len(l.ranks))
	for i := range l.ranks {
		r := &l.ranks[i]
		if l.reports != "" {
			r.Report, _ = launchenv.ReadReport(l.report(i)) // what cannot be read says nothing
		}
		ranks[i] = r.Rank
	}
	l.cause, l.blamed, l.reporter = blame(ranks, l.seen)
	alive := func(i int) bool { return !l.ranks[i].ended }
	if now || l.cause != CauseUnknown && !slices.ContainsFunc(l.blamed, alive) {
		l.end(syscall.SIGTERM)
	}
}

// ended notes how a rank's process has ended, and ends the job if one has failed.
func (l *launcher) ended(i int, status syscall.WaitStatus) {
	r := &l.ranks[i]
	if r.running = false; status.Signaled() {
		r.Signal = status.Signal()
	} else {
		r.Exit = status.ExitStatus()
	}
	r.ended, r.died = true, time.Now()
	switch {
	case l.ending:
	case r.failed() && l.seen < 0:
		l.seen, l.after = i, time.Since(l.begun)
		l.patience = time.After(patience)
	case !r.failed():
		signalGroup(r.PID, syscall.SIGTERM) // what it has left behind
	}
	l.conclude(false)
	go l.finish(i)
}

// finish waits until a rank's group is empty and all it wrote was read. A number is
// not given to another group as long as one has it, and not soon after that.
func (l *launcher) finish(i int) {
	r := &l.ranks[i]
	if !r.goneAfter(l.Grace) {
		signalGroup(r.PID, syscall.SIGKILL)
		r.goneAfter(time.Second) // orphans may be process 1's, which has to look after them
	}
	r.gone.Store(true)
	_, _ = l.names.WriteString(over(r.PID)) // it may have been killed
	for _, pipe := range r.pipes {
		if pipe != nil {
			_ = pipe.SetReadDeadline(time.Now()) // it may be closed: all was read
		}
	}
	r.reading.Wait()
	l.finished <- i
}

// goneAfter reports whether a group becomes empty in so much time. The system does not
// tell when; what looks every few milliseconds is what a rank has left behind.
func (r *rank) goneAfter(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); signalGroup(r.PID, 0); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// interrupted hands on a signal. The first is the reason for which the job ends; a
// second interrupt kills.
func (l *launcher) interrupted(s syscall.Signal) {
	again := l.signal == syscall.SIGINT && s == syscall.SIGINT
	switch {
	case l.killed:
		l.aborted = true // nothing is left but output that nobody takes
	case again:
		l.end(syscall.SIGKILL)
	default:
		if l.conclude(true); !l.ending {
			l.signal, l.after = s, time.Since(l.begun)
		}
		l.end(s)
	}
}

// end sends a signal to all groups that are left. The first time, the grace period
// begins.
func (l *launcher) end(s syscall.Signal) {
	if !l.ending {
		l.deadline = time.After(l.Grace)
	}
	l.ending, l.killed = true, l.killed || s == syscall.SIGKILL
	for i := range l.ranks {
		if r := &l.ranks[i]; r.PID != 0 && !r.gone.Load() {
			signalGroup(r.PID, s)
			if r.running {
				r.Asked = s
			}
		}
	}
}

// dismissKeeper ends the keeper, which has nobody left to keep.
func (l *launcher) dismissKeeper() {
	if l.keeper == nil {
		return
	}
	_ = l.keeper.Kill() // it may just have been killed
	for c := range l.children {
		if c.pid == l.keeper.Pid || c.err != nil {
			break
		}
		l.wait()
	}
	_ = l.keeper.Release() // wait has waited for it
}

// result is what Run returns when the job was begun.
func (l *launcher) result() error {
	if l.seen < 0 && l.signal == 0 {
		if l.Directory == "" {
			for k, o := range []*output{l.out, l.err} {
				if o.err != nil {
					return fmt.Errorf("%s: %w", streamNames[k], o.err)
				}
			}
		}
		return nil
	}
	e := &EndedError{First: -1, Seen: l.seen, Signal: l.signal, After: l.after}
	for i := range l.ranks {
		e.Ranks = append(e.Ranks, l.ranks[i].Rank)
	}
	if l.seen >= 0 {
		e.Cause, e.Blamed, e.First, e.Reporter = l.cause, l.blamed, l.blamed[0], l.reporter
		if r := &l.ranks[e.First]; r.over {
			r.show(e)
		}
	}
	return e
}

// show puts into the error what a rank that is over has written: to standard error, or
// else to standard output.
func (r *rank) show(e *EndedError) {
	for _, k := range []int{1, 0} {
		last, crash := r.streams[k].last, r.streams[k].crash
		if r.files[k] != nil {
			last, crash = endOfFile(r.files[k])
		}
		e.OutputName = streamNames[k]
		if e.Crashed = len(crash) > 0 && r.crashed(); e.Crashed {
			e.Output = crash
		} else {
			e.Output = last.text()
		}
		if len(e.Output) > 0 {
			return
		}
	}
}
