//go:build linux && (amd64 || arm64)

package abi

import (
	"errors"
	"fmt"
	"runtime"
)

// Comm is a communicator: a group of ranks whose messages do not mix with those of other communicators.
type Comm struct {
	lib        *library
	handle     uintptr
	Rank, Size int
}

// describe makes errors of c returned, and sets Rank and Size.
func (c *Comm) describe() error {
	l := c.lib
	if err := l.check("MPI_Comm_set_errhandler", call(l.calls.setErrhandler, c.handle, l.errorsReturn)); err != nil {
		return err
	}
	var rank, size int32
	escape(&rank)
	escape(&size)
	if err := l.check("MPI_Comm_rank", call(l.calls.commRank, c.handle, address(&rank))); err != nil {
		return err
	}
	if err := l.check("MPI_Comm_size", call(l.calls.commSize, c.handle, address(&size))); err != nil {
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

// Dup returns a communicator of the same ranks. It is collective, and blocks until all ranks have called it.
func (c *Comm) Dup() (*Comm, error) {
	d := &Comm{lib: c.lib}
	escape(d)
	if err := c.lib.check("MPI_Comm_dup", call(c.lib.calls.commDup, c.handle, address(&d.handle))); err != nil {
		return nil, err
	}
	return d, d.describe()
}

// Free ends a communicator that Dup or Group made. It is collective.
func (c *Comm) Free() error {
	escape(c)
	return c.lib.check("MPI_Comm_free", call(c.lib.calls.commFree, address(&c.handle)))
}

// Group returns a communicator of some ranks of c, in that order. It is collective among them alone, and blocks until all of
// them have called it. tag, below 32768, tells apart groups that are made at the same time.
func (c *Comm) Group(ranks []int, tag int) (made *Comm, err error) {
	l, d := c.lib, &Comm{lib: c.lib}
	var all, some uintptr
	members := make([]int32, len(ranks))
	for i, r := range ranks {
		if err := c.checkRank(r); err != nil {
			return nil, err
		}
		members[i] = int32(r)
	}
	escape(d)
	escape(&all)
	escape(&some)
	defer runtime.KeepAlive(members)
	if err := l.check("MPI_Comm_group", call(l.calls.commGroup, c.handle, address(&all))); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.check("MPI_Group_free", call(l.calls.groupFree, address(&all)))) }()
	if err := l.check("MPI_Group_incl", call(l.calls.groupIncl, all, number(len(members)), numbers(members), address(&some))); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.check("MPI_Group_free", call(l.calls.groupFree, address(&some)))) }()
	if err := l.check("MPI_Comm_create_group", call(l.calls.commCreateGroup, c.handle, some, number(tag), address(&d.handle))); err != nil {
		return nil, err
	}
	return d, d.describe()
}
