//go:build linux && (amd64 || arm64)

package abi

import (
	"errors"
	"fmt"
	"runtime"
)

// Comm is a communicator: a group of ranks whose messages do not mix with those of other
// communicators.
type Comm struct {
	lib        *library
	handle     uintptr
	Rank, Size int
}

// describe makes errors of c returned, and sets Rank and Size.
func (c *Comm) describe() error {
	l := c.lib
	if err := l.call(mpiCommSetErrhandler, c.handle, l.errorsReturn); err != nil {
		return err
	}
	var rank, size int32
	escape(&rank)
	escape(&size)
	if err := l.call(mpiCommRank, c.handle, address(&rank)); err != nil {
		return err
	}

	if err := l.call(mpiCommSize, c.handle, address(&size)); err != nil {
		return err
	}
	c.Rank, c.Size = int(rank), int(size)
	return nil
}

// checkRank returns an error if c has no such rank. The library would get the lower 32 bits of it.
func (c *Comm) checkRank(rank int) error {
	if rank < 0 || rank >= c.Size {
		return fmt.Errorf("rank %d does not exist: ranks are 0 to %d", rank, c.Size-1)
	}
	return nil
}

// Free ends a communicator that Group made. It is collective.
func (c *Comm) Free() error {
	escape(c)
	return c.lib.call(mpiCommFree, address(&c.handle))
}

// Group returns a communicator of some ranks of c, in that order. It is collective among them
// alone, and blocks until all of them have called it. tag, below 32768, tells apart groups that are
// made at the same time.
func (c *Comm) Group(ranks []int, tag int) (made *Comm, err error) {
	l, d := c.lib, &Comm{lib: c.lib}
	var all, subset uintptr
	members := make([]int32, len(ranks))
	for i, r := range ranks {
		if err := c.checkRank(r); err != nil {
			return nil, err
		}
		members[i] = int32(r)
	}

	escape(d)
	escape(&all)
	escape(&subset)
	defer runtime.KeepAlive(members)
	if err := l.call(mpiCommGroup, c.handle, address(&all)); err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, l.call(mpiGroupFree, address(&all))) }()
	if err := l.call(mpiGroupIncl, all, number(len(members)), numbers(members), address(&subset)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.call(mpiGroupFree, address(&subset))) }()
	if err := l.call(mpiCommCreateGroup, c.handle, subset, number(tag), address(&d.handle)); err != nil {
		return nil, err
	}
	return d, d.describe()
}
