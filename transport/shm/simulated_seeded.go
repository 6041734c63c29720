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
	shortages []shortage
}

// A shortage is that system calls of a process fail which need memory or a descriptor.
type shortage struct {
	label      string
	next, last int // the calls that fail, from 1
	made       int // calls so far
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

// Exhaust lets a process run out of memory or of descriptors: so many of its system calls that need
// one fail, after so many others.
func Exhaust(label string, after, calls int) {
	simulated.shortages = append(simulated.shortages, shortage{label: label, next: after + 1, last: after + calls})
}

func lacks(what unix.Errno) error {
	label := interleave.Label()
	for i := range simulated.shortages {
		s := &simulated.shortages[i]
		if s.label != label {
			continue
		}
		s.made++
		if s.next <= s.made && s.made <= s.last {
			return what
		}
	}
	return nil
}

// HasLacked reports whether a process has run out of memory or descriptors.
func HasLacked(label string) bool {
	return slices.ContainsFunc(simulated.shortages, func(s shortage) bool { return s.label == label && s.made >= s.next })
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
	simulated.segments, simulated.labels, simulated.forbidden, simulated.shortages = nil, nil, nil, nil
	return err
}
