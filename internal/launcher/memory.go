package launcher

import "github.com/goccl/goccl/internal/flight"

// Memory is what a launcher does with the memory that ranks of one machine share.
type Memory struct {
	openFlight      func(job string) (Flight, error)
	removeLeftovers func(prefix string) error
}

// Flight is the flight recorders of a job's ranks in that memory, which outlives the ranks.
type Flight interface {
	Job() string // a name that no other job has
	Size() int   // the number of ranks
	Ranks() ([]flight.Rank, error)
	Close() error
}

// MemoryOf returns the Memory of a transport by two functions.
//
// open opens the flight recorders of a job, and remove removes what dead jobs have left whose
// names start with the prefix.
func MemoryOf[F Flight](open func(job string) (F, error), remove func(prefix string) error) Memory {
	return Memory{
		openFlight: func(job string) (Flight, error) {
			f, err := open(job)
			if err != nil {
				return nil, err
			}
			return f, nil
		},
		removeLeftovers: remove,
	}
}
