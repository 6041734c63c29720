package launcher

import "golang.org/x/sys/unix"

// usableCores returns the cores that this process may use.
func usableCores() ([]int, error) {
	set := unix.NewCPUSet(maxCores)
	if err := unix.SchedGetaffinityDynamic(0, set); err != nil {
		return nil, err
	}
	var cores []int
	for c := range maxCores {
		if set.IsSet(c) {
			cores = append(cores, c)
		}
	}
	return cores, nil
}

// useCores pins this thread, and the program that it executes, to cores.
func useCores(cores []int) error {
	set := unix.NewCPUSet(maxCores)
	for _, c := range cores {
		set.Set(c)
	}
	return unix.SchedSetaffinityDynamic(0, set)
}

// maxCores is the largest number of cores that Linux supports.
const maxCores = 8192
