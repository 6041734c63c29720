//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/internal/packet"
	"github.com/goccl/goccl/transport/mpi/internal/abi"
)

// Name is the transport's name in ccl.yaml.
const Name = "mpi"

// libraryVariable names the MPI library's file. Without it, the library is the one of the
// launcher's MPI.
const libraryVariable = "GOCCL_MPI_LIBRARY"

func init() {
	transport.Register(transport.Provider{Name: Name, Detect: detect, Join: join, Leave: leave})
}

// detect is the provider's Detect: the transport is for processes that an MPI launcher has started.
// Unasked, it connects only those of several nodes.
func detect(j *transport.Job) (auto bool, err error) {
	if !j.Launched {
		return false, noLauncherError(j)
	}
	if _, err := abi.Launched(os.Getenv); err != nil {
		return false, err
	}
	return j.Apart != "", nil
}

// noLauncherError is the error of a process that no launcher has started as one of several ranks.
func noLauncherError(j *transport.Job) error {
	return &transport.MissingConfigurationError{
		Missing: []string{"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"},
		Message: fmt.Sprintf("transport %q connects processes that an MPI launcher starts, and none started this one as one of several ranks: "+
			"start the program with mpirun -n %d, mpiexec or srun, or use local, or auto, between goroutines", Name, max(j.Size, 2)),
	}
}

// connected is this process, once it has joined.
var connected struct {
	sync.Mutex
	process *packet.Process
	wire    *mpiWire
}

// join is the provider's Join.
func join(ctx context.Context, j *transport.Job) ([]transport.Endpoint, error) {
	p, err := connect(ctx, j)
	if err != nil {
		return nil, err
	}
	ep, err := p.JoinWorld(ctx, j.Attempt)
	if err != nil {
		return nil, err
	}
	return []transport.Endpoint{ep}, nil
}

// connect starts MPI, unless it runs.
func connect(ctx context.Context, j *transport.Job) (*packet.Process, error) {
	w, err := abi.Init(ctx, os.Getenv(libraryVariable), os.Getenv)
	switch {
	case err != nil:
		return nil, err
	case w.Size != j.Size || w.Rank != j.Rank:
		return nil, &transport.NotAvailableError{Transport: Name, Reason: fmt.Sprintf(
			"%s counts this process as rank %d of %d, but %s", w.Library, w.Rank, w.Size, j.Origin)}
	}

	connected.Lock()
	defer connected.Unlock()
	if connected.process == nil {
		wire, err := newWire(w)
		if err != nil {
			return nil, err
		}
		connected.wire, connected.process = wire, newProcess(wire)
	}
	return connected.process, nil
}

// newProcess returns the process whose packets a wire carries.
func newProcess(w *mpiWire) *packet.Process {
	return packet.NewProcess(packet.Config{Name: Name, Wire: w, Wrap: func(ep *packet.Endpoint) transport.Endpoint {
		return &native{Endpoint: ep, library: w}
	}})
}

// deadLeaveTime is how long this process waits for the end of MPI if another one has died, which
// MPI does not notice.
const deadLeaveTime = 300 * time.Millisecond

// leave is the provider's Leave: it ends MPI in this process.
func leave(ctx context.Context) error {
	connected.Lock()
	defer connected.Unlock()
	if connected.process == nil {
		return abi.Finalize(ctx)
	}

	p := connected.process
	p.SayGoodbye(ctx)
	if len(p.Others()) < connected.wire.Size()-1 {
		short, cancel := context.WithTimeout(ctx, deadLeaveTime)
		defer cancel()
		ctx = short
	}

	p.Shut()
	connected.process = nil
	if err := connected.wire.close(ctx); err != nil {
		return err
	}
	return abi.Finalize(ctx)
}
