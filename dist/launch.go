package dist

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
)

// joinProcesses is how a launched process meets the others; tests play these.
var joinProcesses = shm.Join

// IsLaunched reports whether a launcher started this process as one of the ranks
// of a job: Spawn then hosts that one rank, and how many there are is for the
// launcher to say, not for Ranks. It is false where several goroutine ranks are for
// the program to start, and for mpirun -n 1 and its like; goccl run -n 1 is meant. It
// is false as well where the launcher's variables cannot be true; Spawn and
// InitProcessGroup then say why. It may be called at any time, also before
// InitProcessGroup (torch.distributed.is_torchelastic_launched).
func IsLaunched() bool {
	l, err := launch()
	return err == nil && l != nil
}

// launch returns the job as one of whose ranks a launcher started this process,
// nil if none did.
func launch() (*launchenv.Job, error) {
	l, err := launchenv.Detect(os.Getenv)
	e, ok := errors.AsType[*launchenv.Error](err)
	if !ok {
		return l, err
	}
	switch e.Kind {
	case launchenv.Missing:
		return nil, &MissingConfigurationError{Missing: e.Variables, Message: e.Message}
	case launchenv.Nodes:
		return nil, &BackendNotAvailableError{Requested: shm.Name, Available: []string{local.Name}, Reason: e.Message}
	default:
		return nil, &InitializationFailedError{Backend: backendName, Err: e}
	}
}

// checkTransport says why the ranks of a job cannot be connected by the transport
// of that name: "auto" is shm between processes, and local between goroutines.
func (j *job) checkTransport(name string) error {
	switch {
	case j.launched != nil && name == local.Name:
		return &BackendNotAvailableError{
			Requested: local.Name,
			Available: []string{shm.Name},
			Reason:    fmt.Sprintf("%v, and local connects goroutines of one process: use shm, or auto", j.launched),
		}
	case j.launched == nil && name == shm.Name:
		return &BackendNotAvailableError{
			Requested: shm.Name,
			Available: []string{local.Name},
			Reason: fmt.Sprintf("it connects processes, and no launcher started this one as one of several ranks: start the program with goccl run -n %d, "+
				"or use local, or auto, between goroutines", max(j.size, 2)),
		}
	}
	return nil
}

// meetProcesses connects the rank of a launched process with those of the others.
func (a *attempt) meetProcesses(timeout time.Duration) (transport.Endpoint, error) {
	j := a.job
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	go func() { // the worker may end meanwhile
		select {
		case <-a.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	// All ranks have made the same number of attempts, and what one of an earlier
	// attempt left behind has another name.
	name := fmt.Sprintf("%s-%d", j.launched.Key, a.number)
	release, err := j.holdPort()
	if err != nil {
		return nil, err
	}
	defer release()
	endpoint, err := joinProcesses(ctx, shm.Job{Name: name, Rank: j.launched.Rank, Size: j.launched.Size, Secret: j.launched.Secret})
	if err != nil && a.isOver() {
		return nil, errElsewhere
	}
	if missing, ok := errors.AsType[*transport.NotAvailableError](err); ok {
		return nil, &BackendNotAvailableError{Requested: missing.Transport, Available: []string{local.Name}, Reason: missing.Reason}
	}
	if ended := j.ctx.Err(); ended != nil && err != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err) // which is the cause alone
	}
	return endpoint, err
}

// holdPort makes rank 0 of a job that is known by a port hold it, until release: no other job
// of that port joins meanwhile.
func (j *job) holdPort() (release func(), err error) {
	l := j.launched
	if l.Port == 0 || l.Rank != 0 {
		return func() {}, nil
	}
	port, err := net.Listen("tcp", fmt.Sprintf(":%d", l.Port))
	if err != nil {
		return nil, fmt.Errorf("rank 0 cannot hold MASTER_PORT=%d while the ranks join, by which they know their job: %w; if another job has it, give this one another", l.Port, err)
	}
	return func() { _ = port.Close() }, nil
}

// excuse fails an attempt for the other processes, whose ranks would wait for this
// one in vain: err is its own mistake. To tell them it has to meet them first.
func (a *attempt) excuse(err error, timeout time.Duration) {
	endpoint, joinErr := a.meetProcesses(timeout)
	if joinErr != nil {
		return // then they know no more than this rank, and err goes before it
	}
	endpoint.Fail(&transport.Failure{
		Kind: transport.FailureAborted, By: endpoint.Rank(), Text: err.Error(), Cause: err,
	})
	_ = errors.Join(endpoint.Close(), endpoint.Free()) // nothing is left to do about it
}
