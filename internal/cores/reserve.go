package cores

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Reservation is the cores of a job, which no other job gets until Release, or until this
// process ends.
type Reservation struct {
	Shares [][]int // of each rank: its hyperthreads, ascending
	usable []int
	locks  []lock
	guests guests
}

// Release frees the cores for other jobs.
func (r *Reservation) Release() {
	for _, l := range r.locks {
		release(l)
	}
}

// On calls start while this thread may only use the share of a rank, which processes that start
// starts inherit. The caller has locked its goroutine to the thread.
func (r *Reservation) On(rank int, start func() error) error {
	if err := Use(r.Shares[rank]); err != nil {
		return fmt.Errorf("pinning it to %s: %w", Format(r.Shares[rank]), err)
	}
	return errors.Join(start(), Use(r.usable))
}

// Changed receives a value when Shared may have changed.
func (r *Reservation) Changed() <-chan struct{} { return r.guests.changed }

// Shared reports whether jobs without cores of their own may use these. As long as they do, no
// rank should be pinned: a core would be idle while the ranks of several jobs wait for another.
func (r *Reservation) Shared() bool { return r.guests.n.Load() > 0 }

// Move lets the threads of the process group of a rank use all cores, or its share only. Threads
// that the program has pinned itself stay where they are.
func (r *Reservation) Move(rank, group int, everywhere bool) {
	from, to := r.usable, r.Shares[rank]
	if everywhere {
		from, to = to, from
	}
	move(group, from, to)
}

// Reserve gives each of ranks a share of the free cores. The error says why that is not
// possible. If the user insists, cores of different speed are as good as others, and if cores
// are too few, hyperthreads are enough.
func Reserve(ranks int, insist bool) (*Reservation, error) {
	turn := takeTurn()
	defer release(turn)
	r := &Reservation{guests: guests{changed: make(chan struct{}, 1)}}
	m, locks, err := survey()
	r.locks = locks

	if err == nil {
		r.usable = CPUs(slices.Concat(m.Free, m.Held))
		r.Shares, err = m.share(ranks, insist)
	}
	if err != nil {
		r.Release()
		return nil, err
	}
	for _, l := range locks {
		go r.guests.receive(l)
	}
	return r, nil
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
		l, held := c.take()
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

// takeTurn makes jobs that start at the same moment choose one after the other: the first gets
// all cores, not each of them some. A process that is stopped in its turn delays each of the
// others by no more than a second.
func takeTurn() (turn lock) {
	held := true
	for tries := 0; held && tries < 1000; tries++ {
		if turn, held = take(LockPrefix + "-cores"); held {
			time.Sleep(time.Millisecond)
		}
	}
	return turn
}
