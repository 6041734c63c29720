package dist

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goccl/goccl/internal/launchenv"
)

// endedPause is the time between two looks at whether a rank has ended.
const endedPause = 20 * time.Millisecond

// endedRank returns the error of ranks that wait for one which has ended by its launcher's word, or
// nil.
func (j *job) endedRank() *PeerLostError {
	e := launchenv.ReadEnded(os.Getenv)
	if j.launched == nil || e == nil || e.Job != j.launched.Key || e.Rank < 0 || e.Rank >= j.size {
		return nil // of no job, or of another one whose rank has started this process
	}
	return &PeerLostError{Rank: e.Rank, PID: e.PID}
}

// withEnd adds to the error of a join that it lost a rank which ended with status 0.
func (j *job) withEnd(err error) error {
	lost, ok := errors.AsType[*PeerLostError](err)
	if ended := j.endedRank(); !ok || ended == nil || *lost != *ended {
		return err
	}
	return fmt.Errorf("rank %d ended, with status 0, and did not join the others: %w", lost.Rank, err)
}
