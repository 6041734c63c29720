package launcher

import "github.com/goccl/goccl/internal/flight"

// Memory is what a launcher does with the memory that ranks of one machine share.
type Memory struct {
	// Monitor, unless nil, shows what the ranks of this node record there. They count for it.
	Monitor *Monitor

	openFlight      func(job string) (Flight, error)
	openNodeFlight  func(isRank func(pid int) bool) (Flight, error)
	removeLeftovers func(prefix string) error
}

// Flight is the flight recorders of a job's ranks in that memory, which outlives the ranks.
type Flight interface {
	Job() string // a name that no other job has
	Size() int   // the number of ranks
	Ranks() ([]flight.Rank, error)
	Close() error
}

// MemoryOf returns the Memory of a transport by three functions.
//
// open opens the flight recorders of a job, openNode those of the ranks that a job of several nodes
// has here, and remove removes what dead jobs have left whose names start with the prefix.
func MemoryOf[F Flight](open func(job string) (F, error), openNode func(isRank func(pid int) bool) (F, error), remove func(prefix string) error) Memory {
	return Memory{openFlight: asFlight(open), openNodeFlight: asFlight(openNode), removeLeftovers: remove}
}

func asFlight[K any, F Flight](open func(K) (F, error)) func(K) (Flight, error) {
	return func(key K) (Flight, error) {
		f, err := open(key)
		if err != nil {
			return nil, err // no pointer to nothing
		}
		return f, nil
	}
}
