//go:build unix

package launcher

import (
	"cmp"
	"context"
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

	"github.com/goccl/goccl/internal/cores"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport/shm"
)

// Run starts the job and returns when it is over. The error is nil if all ranks ended with
// status 0, a *RefusedError if the job could not start, an *EndedError if it
// failed, was ended by a signal or by the end of ctx. The outcome is nil if no rank was started.
func (j *Job) Run(ctx context.Context) (*Outcome, error) {
	// The kernel takes the thread that started the ranks for their parent, and kills them
	// when it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := &launcher{
		Job: j, name: newName(), secret: rand.Text(), ranks: make([]rank, j.Ranks), seen: -1,
		finished: make(chan int, j.Ranks), children: make(chan child, j.Ranks),
	}
	defer l.closeFiles()
	defer func() { l.leaveCores() }()
	defer l.closeFlight()
	if err := l.prepare(); err != nil {
		return nil, &RefusedError{statusUsage, err}
	}
	err := l.startAll()
	if err != nil {
		l.end(syscall.SIGKILL)
	}
	l.watch(ctx)
	took := time.Since(l.started)
	l.dismissKeeper()
	l.writeFlight()
	l.readResults()
	removeReports(l.name)
	_ = shm.RemoveLeftovers(l.name + "-") // goccl doctor reports leftovers that cannot be removed
	if err != nil {
		return nil, &RefusedError{statusFailed, err}
	}
	outcome := &Outcome{Job: l.name, Started: l.started, Took: took, Ranks: l.ended()}
	if l.flight.err != nil {
		return outcome, errors.Join(l.result(), l.flight.err)
	}
	return outcome, l.result()
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
	keeper     *os.Process // nil before it was started
	names      *os.File    // write end of the keeper's pipe

	started  time.Time
	children chan child // the ranks' processes that have ended, from goroutines that wait for them
	finished chan int   // ranks that are over, from their goroutines
	running  int        // ranks that were started and are not over

	seen       int // the first rank that was seen to fail, or -1
	blamedLate <-chan time.Time
	cause      Cause // of the failure, once ending
	blamed     []int
	reporter   int
	signal     syscall.Signal // the first one, if it came before any failure
	canceled   error          // the cause with which the context ended, likewise
	after      time.Duration  // time of these
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
			return &PinError{err}
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

// resultFile is the path of what a rank tells beside failures.
func (l *launcher) resultFile(i int) string {
	return filepath.Join(l.reports, fmt.Sprintf("result-%d", i))
}

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
	if err := l.startKeeper(); err != nil {
		return fmt.Errorf("starting the keeper of the ranks: %w", err)
	}
	l.makeReports()
	environment := l.environment()
	for i := range l.ranks {
		variables := rankVariables(l.name, l.secret, i, l.Ranks)
		if l.cores != nil {
			variables = append(variables, processors(environment, l.cores.Shares[i])...)
		}
		if l.reports != "" {
			variables = append(variables, launchenv.ReportVariable+"="+l.report(i), launchenv.ResultVariable+"="+l.resultFile(i))
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
	r.PID, r.running, r.started = p.Pid, true, time.Now()
	l.running++
	go func() {
		state, err := p.Wait()
		l.children <- child{i, state, err}
	}()
	for k, pipe := range r.pipes {
		if pipe != nil {
			r.reading.Go(func() { r.streams[k].readFrom(pipe) })
		}
	}
	return nil
}

// child is the process of a rank that has ended.
type child struct {
	rank  int
	state *os.ProcessState
	err   error // of waiting for it
}

// watch returns when all started ranks are over.
func (l *launcher) watch(ctx context.Context) {
	l.lookForFlight()
	var shared <-chan struct{}
	if l.cores != nil {
		shared = l.cores.Changed()
	}
	canceled := ctx.Done()
	for l.running > 0 && !l.aborted {
		select {
		case c := <-l.children:
			l.exited(c)
		case i := <-l.finished:
			l.ranks[i].over = true
			l.running--
		case s := <-l.Signals:
			l.interrupted(s.(syscall.Signal))
		case <-canceled:
			canceled = nil
			l.cancel(ctx)
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

// exited records how a rank's process ended, and ends the job if it failed.
func (l *launcher) exited(c child) {
	i := c.rank
	r := &l.ranks[i]
	r.running, r.ended, r.died = false, true, time.Now()
	if r.Wall = r.died.Sub(r.started); c.err != nil {
		r.Exit = StatusUnknown
	} else if status := c.state.Sys().(syscall.WaitStatus); status.Signaled() {
		r.Signal = status.Signal()
	} else {
		r.Exit = status.ExitStatus()
	}
	switch {
	case l.ending:
	case r.Failed() && l.seen < 0:
		l.seen, l.after = i, time.Since(l.started)
		l.openFlight() // of a group that was initialized since
		l.blamedLate = time.After(blameGrace)
	case !r.Failed():
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
// milliseconds, since the system sends no notification. Dead processes count as gone: their parent may be
// slow to wait for them, or never do it.
func (r *rank) goneAfter(limit time.Duration) bool {
	const between = 10 // polls between two looks at the processes, which cost more
	deadline := time.Now().Add(limit)
	for n, dead := 1, 0; ; n++ {
		reapGroup(r.PID)
		if !signalGroup(r.PID, 0) {
			return true
		}
		if n%between == 0 {
			if dead++; !isDead(r.PID) {
				dead = 0
			} else if dead == 2 { // the first look may have missed one that was just started
				return true
			}
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
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

// cancel ends the job because its context has ended.
func (l *launcher) cancel(ctx context.Context) {
	if l.conclude(true); l.ending {
		return
	}
	l.canceled, l.after = ctx.Err(), time.Since(l.started)
	if cause := context.Cause(ctx); !errors.Is(cause, l.canceled) {
		l.canceled = fmt.Errorf("%w: %w", l.canceled, cause)
	}
	l.end(syscall.SIGTERM)
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
	if l.keeper != nil {
		_ = l.keeper.Kill() // it may already be dead
		_, _ = l.keeper.Wait()
	}
}

// readResults reads what the ranks have told beside failures. What is unreadable is as if it were not there.
func (l *launcher) readResults() {
	for i := range l.ranks {
		if r, _ := launchenv.ReadResult(l.resultFile(i)); r != nil && l.reports != "" {
			l.ranks[i].Transport, l.ranks[i].Value = r.Transport, r.Value
		}
	}
}

// ended returns how the ranks ended.
func (l *launcher) ended() []Rank {
	all := make([]Rank, len(l.ranks))
	for i := range all {
		all[i] = l.ranks[i].Rank
	}
	return all
}

// result returns Run's error for a job that started.
func (l *launcher) result() error {
	if l.seen < 0 && l.signal == 0 && l.canceled == nil {
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
	e := &EndedError{Ranks: l.ended(), First: -1, Seen: l.seen, Signal: l.signal, Canceled: l.canceled, After: l.after}
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
