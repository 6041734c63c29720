//go:build linux && interleave

package shm

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/internal/interleave"
	"golang.org/x/sys/unix"
)

// A seed simulates the processes of a node: the goroutines of one label are a process. They join
// the job as real processes do, with files, mappings and locks of their own. What differs is the
// system call on which they sleep, the clock, and how a process ends: by Kill.
var simulated struct {
	segments  []*segment
	labels    []string // of their processes
	forbidden []arena
}

// Simulate places the segments of simulated processes in a directory. A job has the geometry that
// of returns for its ranks.
func Simulate(dir string, of func(ranks int) Geometry) { directory, geometryOf = dir, of }

func noteProcess(s *segment) {
	if interleave.IsSeeded() {
		simulated.segments = append(simulated.segments, s)
		simulated.labels = append(simulated.labels, interleave.Label())
	}
}

// forbid is unmap for a simulated process: touching the memory is a fault from then on, and nothing
// else is mapped there.
func (a arena) forbid() error {
	simulated.forbidden = append(simulated.forbidden, a)
	_, err := unix.MmapPtr(-1, 0, a.base, uintptr(a.size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED)
	return err
}

// isForbidden reports whether a simulated process has given the memory back.
func (a arena) isForbidden() bool { return slices.Contains(simulated.forbidden, a) }

// Bury closes the files of a process that interleave.Kill has killed, as the system does some time
// later. From then on other processes know of its death.
func Bury(label string) {
	for i, s := range simulated.segments {
		if simulated.labels[i] == label && s.fd >= 0 && !s.file.isFreed {
			_ = unix.Close(s.fd)
			s.fd = -1
		}
	}
}

// EndSimulation frees what the simulated processes of a program have, which has ended. It returns
// an error if a process that isDead does not know has not given all its memory back.
func EndSimulation(isDead func(label string) bool) (err error) {
	for i, s := range simulated.segments {
		if !s.file.isFreed {
			if label := simulated.labels[i]; !isDead(label) && err == nil {
				err = fmt.Errorf("%s has not given back the memory of %s", label, s.path)
			}
			_ = unix.Close(s.fd)
			_ = unix.MunmapPtr(s.file.base, uintptr(s.file.size))
		}
	}

	for _, a := range simulated.forbidden {
		_ = unix.MunmapPtr(a.base, uintptr(a.size))
	}
	simulated.segments, simulated.labels, simulated.forbidden = nil, nil, nil
	return err
}
