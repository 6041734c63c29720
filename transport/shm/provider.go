package shm

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/transport"
)

func init() { transport.Register(transport.Provider{Name: Name, Detect: detect, Join: joinJob}) }

// detect is the provider's Detect: the transport is for processes of one node.
func detect(j *transport.Job) (auto bool, err error) {
	if err := available(); err != nil {
		return false, err
	}
	switch {
	case !j.Launched:
		return false, &transport.MissingConfigurationError{
			Missing: []string{"GOCCL_SHM_NAME", "GOCCL_SHM_RANK", "GOCCL_SHM_SIZE"},
			Message: fmt.Sprintf("transport %q connects processes, and no launcher started this one as one of several ranks: "+
				"start the program with goccl run -n %d, which sets GOCCL_SHM_NAME, GOCCL_SHM_RANK and GOCCL_SHM_SIZE, "+
				"or use local, or auto, between goroutines", Name, max(j.Size, 2)),
		}
	case j.Apart != "":
		return false, &transport.NotAvailableError{Transport: Name, Reason: fmt.Sprintf(
			"%s, and %s; shared memory connects ranks of one node: start all of them on one node, or use auto or tcp, which need MASTER_ADDR, "+
				"MASTER_PORT and a secret, or mpi, by mpirun, mpiexec or srun", j.Origin, j.Apart)}
	}
	return true, nil
}

// joinJob is the provider's Join.
func joinJob(ctx context.Context, j *transport.Job) ([]transport.Endpoint, error) {
	ep, err := Join(ctx, jobOf(j))
	if err != nil {
		return nil, err
	}
	return []transport.Endpoint{ep}, nil
}

// jobOf returns the Job of the provider's Join. The number of the attempt separates the job's files
// from those that an earlier attempt may have left behind.
func jobOf(j *transport.Job) Job {
	return Job{Name: fmt.Sprintf("%s-%d", j.Key, j.Attempt), Rank: j.Rank, Size: j.Size, Secret: j.Secret}
}
