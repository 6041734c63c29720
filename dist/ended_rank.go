package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/transport"
)

// endedPause is the time between two looks at whether a rank has ended.
const endedPause = 20 * time.Millisecond

// endedRank returns the rank of the job that has ended by its launcher's word, or nil.
func (j *job) endedRank() *launchenv.Ended {
	if j.launched == nil {
		return nil
	}
	if e := launchenv.ReadEnded(os.Getenv); e != nil && e.Rank >= 0 && e.Rank < j.size {
		return e
	}
	return nil
}

// watchEnds returns a context that ends soon after a rank of the job has ended: it joins no
// more. The transport decides whether it had joined before.
func (j *job) watchEnds(ctx context.Context) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		for watched.Err() == nil {
			if e := j.endedRank(); e != nil {
				cancel(&transport.PeerLostError{Rank: e.Rank, PID: e.PID})
			}

			select {
			case <-watched.Done():
			case <-time.After(endedPause):
			}
		}
	}()
	return watched, func() { cancel(nil) }
}

// withEnd adds to the error of a join that it lost a rank which ended with status 0.
func (j *job) withEnd(err error) error {
	lost, ok := errors.AsType[*transport.PeerLostError](err)
	if !ok {
		return err
	}
	if e := j.endedRank(); e == nil || e.Rank != lost.Rank {
		return err
	}
	return fmt.Errorf("rank %d ended, with status 0, and did not join the others: %w", lost.Rank, err)
}
