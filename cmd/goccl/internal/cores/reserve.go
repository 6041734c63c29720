package cores

import (
	"fmt"
	"time"
)

// Reservation is the cores of a job, which no other job gets until Release, or until this
// process ends.
type Reservation struct {
	Shares [][]int // of each rank: its hyperthreads, ascending
	locks  []lock
}

// Release frees the cores for other jobs.
func (r *Reservation) Release() { release(r.locks) }

// Reserve gives each of ranks a share of the free cores. The error says why that is not
// possible. If the user insists, cores of different speed are as good as others, and if cores
// are too few, hyperthreads are enough.
func Reserve(ranks int, insist bool) (*Reservation, error) {
	turn := takeTurn()
	defer turn.release()
	m, locks, err := survey()
	var shares [][]int
	if err == nil {
		shares, err = m.share(ranks, insist)
	}
	if err != nil {
		release(locks)
		return nil, err
	}
	return &Reservation{shares, locks}, nil
}

// survey takes the locks of all cores that no other job holds, in the caller's turn.
func survey() (m Machine, locks []lock, err error) {
	usable, err := Usable()
	if err != nil {
		return Machine{}, nil, err
	}
	m = look("", usable)
	all := m.Free
	m.Free = nil
	for _, c := range all {
		l, held := take(fmt.Sprintf("%s-core-%d", LockPrefix, c.ID))
		if held {
			m.Held = append(m.Held, c)
			continue
		}
		m.Free = append(m.Free, c)
		locks = append(locks, l)
	}
	return m, locks, nil
}

// LockPrefix is how the names of locks begin. Tests replace it.
var LockPrefix = "goccl"

// lock is a lock that this process holds: a file descriptor, or noLock.
type lock int

const noLock lock = -1

// takeTurn makes jobs that start at the same moment choose one after the other: the first gets
// all cores, not each of them some. A process that is stopped in its turn delays each of the
// others by no more than a second.
func takeTurn() lock {
	for range 1000 {
		turn, held := take(LockPrefix + "-cores")
		if !held {
			return turn
		}
		time.Sleep(time.Millisecond)
	}
	return noLock
}

func release(locks []lock) {
	for _, l := range locks {
		l.release()
	}
}
