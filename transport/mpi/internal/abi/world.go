//go:build linux && (amd64 || arm64)

package abi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/goccl/goccl/transport"
)

// World is MPI in this process: its rank among all.
type World struct {
	Comm
	Library string // its path and version
	Family  Family // of the launcher
}

// process is the state of MPI in this process.
var process struct {
	sync.Mutex
	started *start // nil before the first Init
}

// start is the one initialisation of MPI in this process.
type start struct {
	ended     chan struct{} // closed when Init is over
	world     *World        // constant from then on
	err       error         // constant from then on
	finalize  sync.Once
	finish    chan struct{} // closed when MPI is to end
	finished  chan struct{} // closed when it has ended
	finishErr error         // constant from then on
}

// Init initialises MPI in this process, and returns the same World again if it has been called
// before. path is the library's file, or "" for the launcher's. MPI_Init waits for the other ranks
// and cannot be interrupted: if ctx ends first, Init returns its error, and MPI goes on starting.
//
// Errors are *transport.MissingConfigurationError (no launcher started the process),
// *transport.NotAvailableError (no library, another launcher's library, or one without threads),
// *Error, and ErrFinalized. They are final.
func Init(ctx context.Context, path string, getenv func(string) string) (*World, error) {
	process.Lock()
	s := process.started
	if s == nil {
		l, err := Launched(getenv)
		if err != nil {
			process.Unlock()
			return nil, err
		}
		s = &start{ended: make(chan struct{}), finish: make(chan struct{}), finished: make(chan struct{})}
		process.started = s
		go s.run(path, l)
	}

	process.Unlock()
	select {
	case <-s.ended:
	case <-ctx.Done():
		return nil, fmt.Errorf("MPI_Init waits for ranks that have not started: %w", transport.ContextError(ctx))
	}
	select {
	case <-s.finish:
		return nil, ErrFinalized
	default:
		return s.world, s.err
	}
}

// Finalize ends MPI in this process, if Init has started it. MPI_Finalize waits for the other
// ranks: if ctx ends first, for example because one of them is dead, Finalize returns its error.
// Later calls wait for the same end.
func Finalize(ctx context.Context) error {
	process.Lock()
	s := process.started
	process.Unlock()
	if s == nil {
		return nil
	}
	select {
	case <-s.ended:
	case <-ctx.Done():
		return transport.ContextError(ctx)
	}
	if s.world == nil {
		return nil // Init has ended what it had started
	}
	s.finalize.Do(func() { close(s.finish) })
	select {
	case <-s.finished:
		return s.finishErr
	case <-ctx.Done():
		return transport.ContextError(ctx)
	}
}

// Finalized reports whether MPI has ended in this process, or is about to.
func Finalized() bool {
	process.Lock()
	defer process.Unlock()
	if process.started == nil {
		return false
	}
	select {
	case <-process.started.finish:
		return true
	default:
		return false
	}
}

// run is the thread of MPI, which starts and ends it.
func (s *start) run(path string, launcher *Launcher) {
	runtime.LockOSThread() // and never unlocked: the thread ends with MPI
	defer close(s.finished)
	l, err := load(path, launcher.Family)
	if err == nil {
		s.world, err = l.start(launcher)
	}
	s.err = err
	close(s.ended)
	if err != nil {
		return
	}
	<-s.finish
	s.finishErr = l.call(mpiFinalize)
}

// start initialises MPI by the library. On an error it has ended it.
func (l *library) start(launcher *Launcher) (*World, error) {
	var already, provided int32
	escape(&already)
	escape(&provided)
	if err := l.call(mpiInitialized, address(&already)); err != nil {
		return nil, err
	}
	if already != 0 {
		return nil, notAvailable("another package of this program has initialised %v", l)
	}

	if err := l.call(mpiInitThread, 0, 0, number(int(l.levels.multiple())), address(&provided)); err != nil {
		return nil, err
	}
	w := &World{Comm: Comm{lib: l, handle: l.commWorld}, Library: l.String(), Family: launcher.Family}
	err := l.levels.check(provided, l.String())
	if err == nil {
		err = w.describe()
	}

	if err == nil {
		err = checkSize(w.Size, launcher, l.String())
	}
	if err != nil {
		return nil, errors.Join(err, l.call(mpiFinalize))
	}
	return w, nil
}
