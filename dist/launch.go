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

// joinProcesses connects a process to the others of its job; tests replace it.
var joinProcesses = shm.Join

// IsLaunched reports whether a launcher started this process as one of the ranks
// of a job: Spawn then hosts that one rank, and the launcher determines the number of
// ranks. It is false if the program starts its ranks as goroutines, if a launcher other
// than goccl run started a single rank, and if the launcher's variables are invalid;
// Spawn and InitProcessGroup then return the reason. It may be called at any time, also
// before InitProcessGroup (torch.distributed.is_torchelastic_launched).
func IsLaunched() bool {
	l, err := launch()
	return err == nil && l != nil
}

// launch returns the job of the launcher that started this process as a rank, nil
// if none did.
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

// checkTransport returns an error if the named transport cannot connect the ranks of
// the job. "auto" is shm between processes and local between goroutines.
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

// meetProcesses connects the process's rank with the ranks of the job's other processes.
func (m *rendezvous) meetProcesses(timeout time.Duration) (transport.Endpoint, error) {
	j := m.job
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	go func() { // the worker may end meanwhile
		select {
		case <-m.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	// The number is the same on all ranks, and separates the job's files from those that
	// an earlier rendezvous may have left behind.
	name := fmt.Sprintf("%s-%d", j.launched.Key, m.number)
	release, err := j.holdPort()
	if err != nil {
		return nil, err
	}
	defer release()
	endpoint, err := joinProcesses(ctx, shm.Job{Name: name, Rank: j.launched.Rank, Size: j.launched.Size, Secret: j.launched.Secret})
	if err != nil && m.isOver() {
		return nil, errElsewhere
	}
	if missing, ok := errors.AsType[*transport.NotAvailableError](err); ok {
		return nil, &BackendNotAvailableError{Requested: missing.Transport, Available: []string{local.Name}, Reason: missing.Reason}
	}
	if ended := j.ctx.Err(); ended != nil && err != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err) // err is the context's cause alone
	}
	return endpoint, err
}

// holdPort makes rank 0 of a job that is identified by a port listen on it until
// release, so that no other job with that port can join meanwhile.
func (j *job) holdPort() (release func(), err error) {
	l := j.launched
	if l.Port == 0 || l.Rank != 0 {
		return func() {}, nil
	}
	port, err := net.Listen("tcp", fmt.Sprintf(":%d", l.Port))
	if err != nil {
		return nil, fmt.Errorf("rank 0 cannot hold MASTER_PORT=%d, which identifies the job, while the ranks join: %w; if another job uses it, choose another port", l.Port, err)
	}
	return func() { _ = port.Close() }, nil
}

// announceFailure joins the other processes only to tell them that this rank failed with
// err; without it they would wait until the timeout.
func (m *rendezvous) announceFailure(err error, timeout time.Duration) {
	endpoint, joinErr := m.meetProcesses(timeout)
	if joinErr != nil {
		return // the caller returns err, which matters more
	}
	endpoint.Fail(&transport.Failure{
		Kind: transport.FailureAborted, By: endpoint.Rank(), Text: err.Error(), Cause: err,
	})
	_ = errors.Join(endpoint.Close(), endpoint.Free()) // the caller returns err
}
