package cores

import "golang.org/x/sys/unix"

// Usable returns the hyperthreads that this thread may use, ascending.
func Usable() ([]int, error) {
	set := unix.NewCPUSet(maxCPUs)
	if err := unix.SchedGetaffinityDynamic(0, set); err != nil {
		return nil, err
	}
	var cpus []int
	for c := range maxCPUs {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// Use pins this thread, and the program that it executes, to hyperthreads.
func Use(cpus []int) error {
	set := unix.NewCPUSet(maxCPUs)
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinityDynamic(0, set)
}

// maxCPUs is the largest number of hyperthreads that Linux supports.
const maxCPUs = 8192
