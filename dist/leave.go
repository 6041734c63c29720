package dist

import (
	"context"
	"errors"
	"time"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// failedLeaveTime is how long a process that has failed waits for the other ranks when it leaves
// the job for good. It is short, so that the program can print its error: mpirun ends it a second
// after another rank has died. One that has not failed waits for all ranks as long as the transport
// needs: MPI until they end, as programs do in MPI_Finalize.
const failedLeaveTime = 300 * time.Millisecond

// joinedBy notes that the process has called Join of p.
func (j *job) joinedBy(p transport.Provider) {
	if p.Leave != nil && j.launched != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.leave = p.Leave
	}
}

// leaveTransport ends what a transport has started in this process, once the program needs no
// group any more. failed: some group has failed. That not all ranks have come to the end is no
// error: those that have not report why.
func (j *job) leaveTransport(failed bool) error {
	j.mu.Lock()
	leave := j.leave
	j.leave = nil
	j.mu.Unlock()
	if leave == nil {
		return nil
	}

	ctx := context.Background()
	if failed {
		short, cancel := interleave.WithTimeout(ctx, failedLeaveTime)
		defer cancel()
		ctx = short
	}
	if err := leave(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// hasFailed reports whether a call has told the rank that its group failed.
func (r *rank) hasFailed() bool {
	r.job.mu.Lock()
	defer r.job.mu.Unlock()
	return r.back
}
