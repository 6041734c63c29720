//go:build unix

package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
)

// launcher is a running job. The goroutine of Run owns it, except for fields with another owner.
type launcher struct {
	*Spec
	*attempt
	program        string // path of this program
	started        time.Time
	ranks          []rank
	running        int  // ranks that were started and have not finished; on node 0, with those of other nodes
	hasReportedEnd bool // the ranks were told that one has finished

	outputs [2]*output // standard output and standard error
	null    *os.File   // standard input of ranks other than 0
	cores   pinnedCores
	keeper  keeper
	nodes   nodes
	reports reports
	lock    *os.File // of reports
	flight  flightWatch

	children chan child // the ranks' processes that have ended, from goroutines that wait for them
	finished chan int   // ranks that have finished, from their goroutines

	failure failure
	ending  ending
	pulse   pulse
}

// rank is a rank while it runs.
type rank struct {
	Rank
	running    bool
	isGone     atomic.Bool // the group is empty; its number may be reused
	isFinished bool        // gone, and all its output was read

	wasAsked   bool // for its stacks
	wasStopped bool // when it was asked

	groups   rankGroups
	shortage string           // of what it had too little when it was killed, or ""
	isNear   bool             // its groups were near their memory limit, of which the launcher has warned
	result   launchenv.Result // of a rank of another node

	files   [2]*rankFile
	pipes   [2]*os.File
	streams [2]stream // each belongs to the goroutine that reads its pipe, until isFinished
	reading sync.WaitGroup
}

// Run starts the job and returns when all its ranks have ended.
//
// The error is nil if all ranks ended with status 0, a *RefusedError if the job could not start,
// an *EndedError if it failed, was ended by a signal or by the end of ctx. The outcome is nil if
// no rank was started.
func (j *Spec) Run(ctx context.Context) (*Outcome, error) {
	return j.start(ctx, newAttempt(&Restarts{}))
}

// start is Run of one attempt.
func (j *Spec) start(ctx context.Context, a *attempt) (*Outcome, error) {
	// The kernel takes the thread that started the ranks for their parent, and kills them
	// when it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	l := &launcher{
		Spec: j, attempt: a, failure: failure{seen: -1},
		finished: make(chan int, j.Ranks), children: make(chan child, j.Ranks),
	}
	defer func() { l.nodes.Close() }()
	if err := l.joinNodes(ctx); err != nil {
		return nil, err
	}
	l.makeRanks()

	defer l.closeFiles()
	defer func() { l.cores.release() }()
	l.flight.slow = -1
	l.flight.Monitor = cmp.Or(j.Memory.Monitor, new(Monitor))
	l.flight.begin(l.restart, l.firstHere(), l.Ranks)
	defer l.flight.open(nil)
	if err := l.prepare(); err != nil {
		err = &RefusedError{statusUsage, err}
		l.nodes.GiveUp(err)
		return nil, err
	}

	err := l.startAll()
	if err != nil {
		l.nodes.GiveUp(err)
		l.signalAll(syscall.SIGKILL)
	}
	l.watch(ctx)
	took := time.Since(l.started)

	// All ranks have ended.
	l.keeper.dismiss()
	l.writeFlight()
	l.readResults()
	removeReports(l.name)
	_ = l.Memory.removeLeftovers(l.nodes.job + "-") // goccl doctor reports leftovers that cannot be removed

	if err != nil {
		if errors.Is(err, syscall.EAGAIN) {
			err = fmt.Errorf("%w%s", err, raiseProcesses)
		}
		return nil, &RefusedError{statusFailed, fmt.Errorf("%w%s", err, l.failure.before.describe("", false))}
	}
	err = l.endNodes(l.jobError(), took)
	ranks := l.exits()
	return &Outcome{Job: l.nodes.job, Restart: l.restart, Started: l.started, Took: took, Ranks: ranks, Warning: cmp.Or(describeBuilds(ranks), describeRests(ranks))}, err
}

// prepare does everything that can fail before a process is started.
func (l *launcher) prepare() (err error) {
	if err := l.cores.reserve(l.Spec); err != nil {
		return err
	}
	if l.program, err = os.Executable(); err != nil {
		return err
	}
	if l.null, err = os.Open(os.DevNull); err != nil {
		return err
	}

	if l.Flight != "" {
		if err := os.MkdirAll(l.Flight, 0o777); err != nil {
			return fmt.Errorf("the flight recorders of the ranks: %w", err)
		}
	}
	return l.openOutputs()
}

// warn tells the user something about a rank, or -1.
func (l *launcher) warn(rank int, text string) {
	if l.Warn != nil {
		l.Warn(Warning{l.nodes.job, l.restart, rank, text})
	}
}
