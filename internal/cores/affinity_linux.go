package cores

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Usable returns the hyperthreads that this thread may use, ascending.
func Usable() ([]int, error) { return usableBy(0) }

func usableBy(thread int) ([]int, error) {
	set := unix.NewCPUSet(maxCPUs)
	if err := unix.SchedGetaffinityDynamic(thread, set); err != nil {
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

// Use lets this thread, and the processes that it starts, use these hyperthreads only.
func Use(cpus []int) error { return use(0, cpus) }

func use(thread int, cpus []int) error {
	set := unix.NewCPUSet(maxCPUs)
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinityDynamic(thread, set)
}

// move lets all threads of a process group that may use exactly the hyperthreads from use those
// of to. A thread that starts meanwhile may have inherited from, so move looks again as long as it
// finds some.
func move(group int, from, to []int) {
	moved := !slices.Equal(from, to)
	for tries := 0; moved && tries < 10; tries++ {
		moved = false
		for _, thread := range threads(group) {
			if cpus, err := usableBy(thread); err == nil && slices.Equal(cpus, from) {
				moved = use(thread, to) == nil || moved
			}
		}
	}
}

// threads returns the threads of a process group.
func threads(group int) (all []int) {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range processes {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if of, err := unix.Getpgid(pid); err != nil || of != group {
			continue
		}
		tasks, _ := os.ReadDir(filepath.Join(dir, "task")) // it may have ended
		for _, task := range tasks {
			thread, _ := strconv.Atoi(task.Name())
			all = append(all, thread)
		}
	}
	return all
}

// maxCPUs is the largest number of hyperthreads that Linux supports.
const maxCPUs = 8192
