package dist

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/shm"
)

// IsLaunched reports whether a launcher started this process as one of the ranks of a job
// (torch.distributed.is_torchelastic_launched). Spawn then hosts that one rank, and the launcher
// determines the number of ranks.
//
// It is false if the program starts its ranks as goroutines, or if a launcher other than goccl run
// started a single rank. It is also false if the launcher's variables are invalid: Spawn and
// InitProcessGroup then return the reason.
//
// It may be called at any time, also before InitProcessGroup.
func IsLaunched() bool {
	l, err := launch()
	return err == nil && l != nil
}

// launch returns the job of the launcher that started this process as a rank, nil
// if none did.
func launch() (*launchenv.Job, error) {
	l, err := launchenv.Detect(os.Getenv)
	if e, ok := errors.AsType[*launchenv.Error](err); ok && e.Kind == launchenv.Missing {
		return nil, &MissingConfigurationError{Missing: e.Variables, Message: e.Message}
	} else if err != nil {
		return nil, &InitializationFailedError{Backend: backendName, Err: err}
	}
	if l != nil && l.Apart != "" {
		if err := canConnect(l); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// launchOrRefuse is launch for a process that is about to join. If it cannot be a rank because the
// launcher gives it a number that the job does not have, it tells the ranks that wait for it.
func launchOrRefuse() (*launchenv.Job, error) {
	l, err := launch()
	mistake, ok := errors.AsType[*launchenv.Error](err)
	if !ok || len(mistake.Variables) == 0 {
		return l, err
	}

	asRank0 := func(variable string) string {
		if variable == mistake.Variables[0] {
			return "0"
		}
		return os.Getenv(variable)
	}
	if j, err0 := launchenv.Detect(asRank0); err0 == nil && j != nil && j.Apart == "" {
		shm.Refuse(context.Background(), &transport.Job{Size: j.Size, Rank: j.Size, Key: j.Key, Secret: j.Secret, Attempt: 1}, mistake)
	}
	return nil, err
}

// joinProcesses connects the process's rank with the ranks of the job's other processes.
func (m *rendezvous) joinProcesses(p transport.Provider, timeout time.Duration) (transport.Endpoint, error) {
	if p.Name == shm.Name {
		release, err := m.job.holdPort()
		if err != nil {
			described := m.job.described()
			described.Attempt = m.number
			shm.Refuse(m.job.ctx, described, err)
			return nil, err
		}
		defer release()
	}

	endpoints, err := m.join(p, timeout)
	if port := m.job.launched.Port; err != nil && port != 0 {
		err = fmt.Errorf("%w; MASTER_PORT=%d identifies the job", err, port)
	}
	if err != nil {
		return nil, err
	}
	return endpoints[0], nil
}

// join connects the ranks of this process with all others by p.
func (m *rendezvous) join(p transport.Provider, timeout time.Duration) ([]transport.Endpoint, error) {
	j := m.job
	launched := j.launched // the goroutine below may outlive this job of the process
	ctx, cancel := context.WithCancelCause(j.ctx)
	defer cancel(nil)

	if timeout > 0 {
		late, stop := interleave.WithTimeout(ctx, timeout)
		defer stop()
		ctx = late
	}
	interleave.Go(func() {
		for ctx.Err() == nil {
			switch interleave.FirstOfThree(m.decided, ctx.Done(), interleave.After(endedPause)) {
			case 0: // the worker may end meanwhile
				interleave.Step()
				cancel(nil)
			case 2:
				if ended := endedRank(launched); ended != nil { // the transport knows whether it had joined before
					interleave.Step()
					cancel(ended)
				}
			}
		}
	})

	described := j.described()
	described.Attempt = m.number
	j.joinedBy(p)
	endpoints, err := joinBy(ctx, p, described)
	err = withEnd(launched, err)
	if err != nil && m.isOver() {
		return nil, errElsewhere
	}
	if missing, ok := errors.AsType[*transport.NotAvailableError](err); ok {
		return nil, j.notAvailable(missing)
	}
	if ended := j.ctx.Err(); ended != nil && err != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err) // err is the context's cause alone
	}
	if err == nil && len(endpoints) != len(j.ranks) {
		err = fmt.Errorf("transport %q made %d endpoints for %d ranks of this process: this is a defect of the transport", p.Name, len(endpoints), len(j.ranks))
		err = errors.Join(err, discard(endpoints))
	}
	if err != nil {
		return nil, err
	}
	return endpoints, nil
}

// discard ends endpoints that no rank has used.
func discard(endpoints []transport.Endpoint) error {
	var errs []error
	for _, ep := range endpoints {
		errs = append(errs, ep.Close(), ep.Free())
	}
	return errors.Join(errs...)
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
		return nil, fmt.Errorf("rank 0 cannot hold MASTER_PORT=%d, which identifies the job, while the ranks join: %w; another job may use it, or two processes say they are rank 0: give each job another port, and each process a rank of its own", l.Port, err)
	}
	return func() { _ = port.Close() }, nil
}

// announceFailure joins the other processes, by p or if that is empty by auto, only to tell
// them that this rank failed with err; without it they would wait until the timeout.
func (m *rendezvous) announceFailure(p transport.Provider, err error, timeout time.Duration) {
	if p.Name == "" {
		var none error
		if p, none = m.job.choose(auto); none != nil {
			return
		}
	}
	endpoint, joinErr := m.joinProcesses(p, timeout)
	if joinErr != nil {
		return // the caller returns err, which matters more
	}
	endpoint.Fail(&transport.Failure{
		Kind: transport.FailureAborted, By: endpoint.Rank(), Text: err.Error(), Cause: err,
	})
	_ = discard([]transport.Endpoint{endpoint}) // the caller returns err
}
