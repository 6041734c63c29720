package launch

import (
	"errors"

	"github.com/goccl/goccl/internal/launcher"
)

// Reasons why Run starts nothing. Run wraps them with what to do.
var (
	// ErrIsRank means that a launcher has started this process as a rank of a job.
	ErrIsRank = errors.New("this process is a rank itself")
	// ErrInit means that the program's packages are not initialized yet, so that main has not begun.
	ErrInit = errors.New("called before main")
)

// JobError is a job that failed, or that the end of its context ended.
type JobError struct {
	// Rank is the rank that made the job fail, or -1 if no rank did before the context ended. If
	// several did, it is the lowest.
	Rank int
	// Ranks is how all ranks ended.
	Ranks []Rank

	ended *launcher.EndedError
	text  string // of ended, and of what was lost
}

// Error names the rank to blame, with the cause in full, how the others ended, and which of their
// output was lost.
func (e *JobError) Error() string { return e.text }

// Unwrap returns the reason why the context ended, if that ended the job.
func (e *JobError) Unwrap() error { return e.ended.Unwrap() }
