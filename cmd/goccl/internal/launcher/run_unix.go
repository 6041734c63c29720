//go:build unix

package launcher

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/cores"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport/shm"
)

// Run starts the job and returns when it is over: nil if all ranks ended with
// status 0, a *RefusedError if the job could not start, an *EndedError if it
// failed.
func (j *Job) Run() error {
	// The kernel takes the thread that started the ranks for their parent, and kills them
	// when it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := &launcher{
		Job: j, name: newName(), secret: rand.Text(), ranks: make([]rank, j.Ranks), seen: -1,
		finished: make(chan int, j.Ranks), children: make(chan child, 1),
	}
	defer l.closeFiles()
	defer func() { l.leaveCores() }()
	defer l.closeFlight()
	if err := l.prepare(); err != nil {
		return &RefusedError{statusUsage, err}
	}
	err := l.startAll()
	if err != nil {
		l.end(syscall.SIGKILL)
	}
	l.watch()
	l.dismissKeeper()
	l.writeFlight()
	removeReports(l.name)
	_ = shm.RemoveLeftovers(l.name + "-") // goccl doctor reports leftovers that cannot be removed
	if err != nil {
		return &RefusedError{statusFailed, err}
	}
	if l.flight.err != nil {
		return errors.Join(l.result(), l.flight.err)
	}
	return l.result()
}

// newName returns a unique job name.
func newName() string {
	key := make([]byte, 8)
	_, _ = rand.Read(key) // never fails
	return fmt.Sprintf("goccl-%x", key)
}

// launcher is a running Job. The goroutine of Run owns it, except for fields with another
// owner.
type launcher struct {
	*Job
	name       string // of the job
	secret     string // by which its ranks recognise each other; in no other process's arguments
	ranks      []rank
	cores      *cores.Reservation // nil if the ranks are not pinned
	shared     bool               // other jobs use the same cores, so no rank is pinned now
	leaveCores func()
	out, err   *output
	program    string   // path of this program
	null       *os.File // standard input of ranks other than 0
	reports    string   // directory of the ranks' reports, or ""
	flight     flightWatch
	keeper     *os.Process // nil once it has ended
	names      *os.File    // write end of the keeper's pipe

	started  time.Time
	children chan child // from the goroutine that wait starts
	finished chan int   // ranks that are over, from their goroutines
	byPID    map[int]int

	seen       int // the first rank that was seen to fail, or -1
	blamedLate <-chan time.Time
	cause      Cause // of the failure, once ending
	blamed     []int
	reporter   int
	signal     syscall.Signal // the first one, if it came before any failure
	after      time.Duration  // time of either
	ending     bool           // the ranks were sent a signal
	killed     bool           // and it was SIGKILL
	deadline   <-chan time.Time
	aborted    bool // by an interrupt after all were killed
}

// rank is a rank while it runs.
type rank struct {
	Rank
	running bool
	gone    atomic.Bool // the group is empty; its number may be reused
	over    bool        // gone, and all its output was read
	stacks  bool        // it was asked for its stacks
	stopped bool        // it was then stopped
	before  int64       // the length of its file of standard error then

	// The files of Directory or Tee. Without Directory it has two pipes with streams.
	files   [2]*os.File
	pipes   [2]*os.File
	streams [2]stream // each belongs to the goroutine that reads its pipe, until over
	reading sync.WaitGroup
}

var streamNames = [2]string{"standard output", "standard error"}

// prepare does everything that can fail before a process is started.
func (l *launcher) prepare() (err error) {
	l.byPID = make(map[int]int)
	if err := l.reserveCores(); err != nil {
		return err
	}
	if l.program, err = os.Executable(); err != nil {
		return err
	}
	if l.null, err = os.Open(os.DevNull); err != nil {
		return err
	}
	if dir := cmp.Or(l.Directory, l.Tee); dir != "" {
		if err := l.makeFiles(dir); err != nil || l.Directory != "" {
			return err
		}
	}
	var mu sync.Mutex
	l.out, l.err = newOutput(&mu, l.Stdout), newOutput(&mu, l.Stderr)
	for i := range l.ranks {
		for k, o := range []*output{l.out, l.err} {
			s := &l.ranks[i].streams[k]
			s.tee, s.stamped = l.ranks[i].files[k], l.Timestamps
			if i == 0 || !l.Quiet {
				s.out = o
			}
			if !l.NoPrefix {
				s.prefix = o.prefix(i, l.Ranks)
			}
		}
	}
	return nil
}

// reserveCores gives the ranks cores of their own. By default too few cores are no error: the
// job shares those of other jobs.
func (l *launcher) reserveCores() (err error) {
	l.leaveCores = func() {}
	if l.Pin == PinOn || l.Pin == PinDefault && l.Ranks > 1 {
		if l.cores, err = cores.Reserve(l.Ranks, l.Pin == PinOn); err == nil {
			l.leaveCores = l.cores.Release
			return nil
		}
		if l.Pin == PinOn {
			return fmt.Errorf("--pin: %w: start fewer ranks, or let them share cores with --pin=off", err)
		}
	}
	l.leaveCores = cores.Visit()
	return nil
}

// moveRanks lets all ranks run on all cores while other jobs use them too, and pins them
// afterwards.
func (l *launcher) moveRanks() {
	if shared := l.cores.Shared(); shared != l.shared {
		l.shared = shared
		for i := range l.ranks {
			if r := &l.ranks[i]; r.PID != 0 && !r.gone.Load() {
				l.cores.Move(i, r.PID, shared)
			}
		}
	}
}

// makeFiles creates the ranks' files in a directory, all or none.
func (l *launcher) makeFiles(dir string) error {
	err := os.MkdirAll(dir, 0o777)
	for i := range l.ranks {
		for k, ending := range []string{"out", "err"} {
			if err == nil {
				name := filepath.Join(dir, fmt.Sprintf("rank-%d.%s", i, ending))
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

// makeReports creates the directory of reports, once a keeper exists that removes it. If
// that fails the job runs without reports, and the launcher uses the order in which ranks end.
func (l *launcher) makeReports() {
	for _, dir := range reportDirectories(l.name) {
		if os.Mkdir(dir, 0o700) == nil {
			l.reports, _ = filepath.Abs(dir) // ranks may change their directory
			return
		}
	}
}

// reportDirectories are candidates for the directory of a job's reports; the first one that
// can be created is used. In containers often only shared memory is writable.
func reportDirectories(name string) []string {
	return []string{filepath.Join(os.TempDir(), name), filepath.Join("/dev/shm", name)}
}

// removeReports removes the directories of a job's reports.
func removeReports(name string) {
	for _, dir := range reportDirectories(name) {
		_ = os.RemoveAll(dir) // what is not there is no error
	}
}

// report is the path of a rank's report.
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
	l.started = time.Now()
	if err := adoptOrphans(); err != nil {
		return err
	}
	if err := l.startKeeper(); err != nil {
		return fmt.Errorf("starting the keeper of the ranks: %w", err)
	}
	l.wait()
	l.makeReports()
	environment := l.environment()
	for i := range l.ranks {
		variables := rankVariables(l.name, l.secret, i, l.Ranks)
		if l.cores != nil {
			variables = append(variables, processors(environment, l.cores.Shares[i])...)
		}
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
	// It inherits nothing of the launcher's: a process that reads the launcher's output to its
	// end would wait for the keeper, too.
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
	if l.Directory == "" { // the files of Tee are the launcher's
		for k := range theirs {
			var err error
			if r.pipes[k], theirs[k], err = os.Pipe(); err != nil {
				return err
			}
			defer theirs[k].Close()
		}
	}
	var p *os.Process
	start := func() (err error) {
		p, err = os.StartProcess(l.program, append([]string{rankName, l.Program}, l.Args...), &os.ProcAttr{
			Files: []*os.File{input, theirs[0], theirs[1], l.names},
			Env:   environment,
			Sys:   rankAttributes(),
		})
		return err
	}
	var err error
	if l.cores == nil {
		err = start()
	} else {
		err = l.cores.On(i, start)
	}
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

// child is a process that has ended: a rank, the keeper or an orphan.
type child struct {
	pid    int
	status syscall.WaitStatus
	err    error
}

// wait sends the next child that ends. At most one such goroutine runs, so that
// none remains when the launcher needs no more children.
func (l *launcher) wait() {
	go func() {
		var c child
		for c.err = syscall.EINTR; errors.Is(c.err, syscall.EINTR); {
			c.pid, c.err = syscall.Wait4(-1, &c.status, 0, nil)
		}
		l.children <- c
	}()
}

// watch returns when all started ranks are over.
func (l *launcher) watch() {
	left := len(l.byPID)
	l.lookForFlight()
	var shared <-chan struct{}
	if l.cores != nil {
		shared = l.cores.Changed()
	}
	for left > 0 && !l.aborted {
		select {
		case c := <-l.children:
			if c.err != nil {
				continue // no children: the last ranks are about to be finished
			}
			l.wait()
			if l.keeper != nil && c.pid == l.keeper.Pid {
				l.keeper = nil // it was killed
			} else if i, ok := l.byPID[c.pid]; ok {
				l.ended(i, c.status)
			}
		case i := <-l.finished:
			l.ranks[i].over = true
			left--
		case s := <-l.Signals:
			l.interrupted(s.(syscall.Signal))
		case <-shared:
			l.moveRanks()
		case <-l.flight.next:
			l.lookForFlight()
		case <-l.blamedLate:
			l.conclude(true)
		case <-l.deadline:
			l.end(syscall.SIGKILL)
		}
	}
}

// blameGrace is how long a rank to blame may take to end by itself after others have
// ended because of it: its own end and output are the best information.
const blameGrace = 500 * time.Millisecond

// conclude ends the job once a rank has failed and all ranks to blame have ended, or
// after blameGrace. Later reports are consequences of that.
func (l *launcher) conclude(now bool) {
	if l.seen < 0 || l.ending {
		return
	}
	ranks := make([]Rank, len(l.ranks))
	for i := range l.ranks {
		r := &l.ranks[i]
		if l.reports != "" {
			r.Report, _ = launchenv.ReadReport(l.report(i)) // an unreadable report is ignored
		}
		ranks[i] = r.Rank
	}
	l.cause, l.blamed, l.reporter = blame(ranks, l.seen)
	alive := func(i int) bool { return !l.ranks[i].ended }
	if _, end := followWaits(ranks, l.blamed[0]); !now && l.cause == CauseSilent && end >= 0 && alive(end) {
		return // its report may close a circle
	}
	if now || l.cause != CauseUnknown && !slices.ContainsFunc(l.blamed, alive) {
		l.end(syscall.SIGTERM)
	}
}

// ended records how a rank's process ended, and ends the job if it failed.
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
		l.seen, l.after = i, time.Since(l.started)
		l.openFlight() // of a group that was initialized since
		l.blamedLate = time.After(blameGrace)
	case !r.failed():
		signalGroup(r.PID, syscall.SIGTERM) // the rest of its group
	}
	l.conclude(false)
	go l.finish(i)
}

// finish waits until a rank's group is empty and all its output was read. The number of a
// group is not reused while the group exists, nor soon afterwards.
func (l *launcher) finish(i int) {
	r := &l.ranks[i]
	if !r.goneAfter(l.Grace) {
		signalGroup(r.PID, syscall.SIGKILL)
		r.goneAfter(time.Second) // orphans may be children of a process 1 that is slow to wait for them
	}
	r.gone.Store(true)
	_, _ = l.names.WriteString(over(r.PID)) // the keeper may have been killed
	for _, pipe := range r.pipes {
		if pipe != nil {
			_ = pipe.SetReadDeadline(time.Now()) // it may be closed: all was read
		}
	}
	r.reading.Wait()
	l.finished <- i
}

// goneAfter reports whether a group becomes empty within that time. It polls every few
// milliseconds, since the system sends no notification.
func (r *rank) goneAfter(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); signalGroup(r.PID, 0); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// interrupted forwards a signal. The first one is the reason why the job ends; a
// second interrupt kills.
func (l *launcher) interrupted(s syscall.Signal) {
	again := l.signal == syscall.SIGINT && s == syscall.SIGINT
	switch {
	case l.killed:
		l.aborted = true // the output cannot be written
	case again:
		l.end(syscall.SIGKILL)
	default:
		if l.conclude(true); !l.ending {
			l.signal, l.after = s, time.Since(l.started)
		}
		l.end(s)
	}
}

// end sends a signal to all remaining groups. The first time it starts the grace period.
func (l *launcher) end(s syscall.Signal) {
	if !l.ending {
		l.deadline = time.After(l.Grace)
	}
	l.ending, l.killed = true, l.killed || s == syscall.SIGKILL
	for i := range l.ranks {
		if r := &l.ranks[i]; r.PID != 0 && !r.gone.Load() {
			if r.running {
				r.Asked = s
			}
			if s != syscall.SIGTERM || r.stacks || !l.isAwaited(i) || !r.ask() {
				signalGroup(r.PID, s)
			}
		}
	}
}

// isAwaited reports whether the job has failed because others waited for a rank that still runs.
func (l *launcher) isAwaited(i int) bool {
	return l.seen >= 0 && l.ranks[i].running && slices.Contains(l.blamed, i) &&
		(l.cause == CauseSilent || l.cause == CauseLeft || l.cause == CauseCircle || l.cause == CauseDeadlock)
}

// ask ends the rank by a signal that shows its stacks, and reports whether it understands that one. What it
// writes then is kept and not shown.
func (r *rank) ask() bool {
	r.stopped = isStopped(r.PID)
	if f := r.files[1]; f != nil {
		if info, err := f.Stat(); err == nil {
			r.before = info.Size()
		}
	}
	r.streams[1].asked.Store(true)
	if r.stacks = askStacks(r.PID); r.stacks {
		r.Asked = syscall.SIGQUIT
	}
	return r.stacks
}

// dismissKeeper ends the keeper after the last rank.
func (l *launcher) dismissKeeper() {
	if l.keeper == nil {
		return
	}
	_ = l.keeper.Kill() // it may already be dead
	for c := range l.children {
		if c.pid == l.keeper.Pid || c.err != nil {
			break
		}
		l.wait()
	}
	_ = l.keeper.Release() // wait has waited for it
}

// result returns Run's result for a job that started.
func (l *launcher) result() error {
	if l.seen < 0 && l.signal == 0 {
		if l.Directory == "" {
			for k, o := range []*output{l.out, l.err} {
				if o.err != nil {
					return fmt.Errorf("%s: %w", streamNames[k], o.err)
				}
				for i := range l.ranks {
					if err := l.ranks[i].streams[k].teeErr; err != nil {
						return fmt.Errorf("--tee: %w", err)
					}
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
		for _, i := range e.Blamed {
			if r := &l.ranks[i]; r.over {
				r.show(e, i)
			}
		}
	}
	return e
}

// show adds to the error what a rank to blame, which is over, has shown: where it was; and of the first such
// rank the crash, or the last output, of standard error or else of standard output.
func (r *rank) show(e *EndedError, i int) {
	for _, k := range []int{1, 0} {
		s := &r.streams[k]
		last, crash, stacks := s.last, s.crash, s.crash
		if r.pipes[k] == nil {
			until := int64(-1)
			if k == 1 && r.stacks {
				until = r.before
			}
			last, crash, stacks = contentsOf(r.files[k], until)
		}
		if k == 1 && (r.stacks || r.stopped) {
			_, all := stacks.message()
			if place, ok := placeOf(i, all); ok || r.stopped {
				place.Stopped = r.stopped
				e.Places = append(e.Places, place)
			}
		}
		if i != e.First || len(e.Output) > 0 || len(e.Crash) > 0 {
			continue
		}
		e.Output, e.OutputName = last.text(), streamNames[k]
		if lines, all := crash.message(); len(all) > 0 && r.crashed(e.Output) {
			if strings.HasPrefix(lines[0], "SIG") {
				place, _ := placeOf(i, all) // a signal may come anywhere
				all = append(place.Goroutines, all...)
			}
			e.Output, e.Crash, e.Stack = nil, lines, &all[0]
		}
	}
}
