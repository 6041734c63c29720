package failure

import "slices"

// SharedError is an error that all ranks of a group get because of some of them, and that leaves
// the group intact. Its text is that of Err.
type SharedError struct {
	Err   error
	Ranks []int // of the job, ascending; those whose doing it is
}

// Share returns err as the error of all members of a group because of ranks of the group, or of all
// of them alike if there are none. members are those of the group, as ranks of the job.
func Share(err error, members []int, ranks ...int) error {
	e := &SharedError{Err: err, Ranks: slices.Clone(members)}
	for i, r := range ranks {
		e.Ranks[i] = members[r]
	}
	if ranks != nil {
		e.Ranks = e.Ranks[:len(ranks)]
	}
	slices.Sort(e.Ranks)
	return e
}

func (e *SharedError) Error() string { return e.Err.Error() }

// Unwrap returns the error that the ranks share.
func (e *SharedError) Unwrap() error { return e.Err }
