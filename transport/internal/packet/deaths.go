package packet

import (
	"os"

	"github.com/goccl/goccl/internal/interleave"
)

// deaths is what a process knows of dead ones. An MPI reports none, but may fail to send to one:
// each process watches those of its own host, and reports deaths to the others.
type deaths struct {
	isDead []interleave.Bool // by rank

	mu      interleave.Mutex
	pids    []int // by rank; 0: not known
	watched watched
}

func newDeaths(size int, pids []int) deaths {
	return deaths{isDead: make([]interleave.Bool, size), pids: append(make([]int, 0, size), pids...)[:size]}
}

// watchRank notes a rank's process. If the wire does not report dead processes, isSilent, it is
// watched if it is of this process's host.
func (d *deaths) watchRank(rank int, h, here host, isSilent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	isKnown := d.pids[rank] != 0
	d.pids[rank] = h.pid
	if isSilent && !isKnown && h.pid != os.Getpid() && h.sharesPIDs(here) && !d.watched.add(rank, h.pid) {
		d.isDead[rank].Store(true)
	}
}

// findDead returns the processes of this host that have died since the last look.
func (d *deaths) findDead() (died []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, rank := range d.watched.find() {
		if !d.isDead[rank].Swap(true) {
			died = append(died, rank)
		}
	}
	return died
}

// markDead marks a rank as dead, and reports whether that is new.
func (d *deaths) markDead(rank int) bool { return !d.isDead[rank].Swap(true) }

// pidOf returns the process id of a rank, 0 if it is not known.
func (d *deaths) pidOf(rank int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pids[rank]
}
