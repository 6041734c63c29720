package launcher

import "golang.org/x/sys/unix"

// usableCores returns the cores on which this process may run.
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

// useCores keeps this thread, and the program that it becomes, on some cores.
func useCores(cores []int) error {
	set := unix.NewCPUSet(maxCores)
	for _, c := range cores {
		set.Set(c)
	}
	return unix.SchedSetaffinityDynamic(0, set)
}

// maxCores is the largest number that Linux can be built for.
const maxCores = 8192
