package shm

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// usableCores returns how many cores the ranks together may use. Each rank may be bound to some
// cores. If GOMAXPROCS is below the number of cores, it limits all ranks together, since it then
// reflects a CPU quota that they share.
func usableCores(s *segment, ranks int) int {
	var all unix.CPUSet
	for rank := range ranks {
		var allowed unix.CPUSet
		if unix.SchedGetaffinity(s.pid(rank), &allowed) != nil { // it has ended, or lives in another pid namespace
			continue
		}
		for i := range all {
			all[i] |= allowed[i]
		}
	}
	cores := max(all.Count(), runtime.NumCPU())
	if limit := runtime.GOMAXPROCS(0); limit < runtime.NumCPU() {
		return min(cores, limit)
	}
	return cores
}
