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

// endedRank returns the error of ranks of l that wait for one which has ended by its launcher's
// word, or nil. l may be nil.
func endedRank(l *launchenv.Job) *PeerLostError {
	e := launchenv.ReadEnded(os.Getenv)
	if l == nil || e == nil || e.Job != l.Key || e.Rank < 0 || e.Rank >= l.Size {
		return nil // of no job, or of another one whose rank has started this process
	}
	return &PeerLostError{Rank: e.Rank, PID: e.PID, Host: e.Host}
}

// withEnd returns the error of a join of l, or why it lost a rank that ended with status 0. Of that
// the transport's error may be the end of a context.
func withEnd(l *launchenv.Job, err error) error {
	lost, isLost := errors.AsType[*PeerLostError](err)
	ended := endedRank(l)
	if !isLost || ended == nil || lost.Rank != ended.Rank || lost.PID != ended.PID {
		return err
	}
	return fmt.Errorf("rank %d ended, with status 0, and did not join the others: %w", ended.Rank, ended)
}
