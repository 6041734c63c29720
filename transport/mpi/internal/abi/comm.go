//go:build linux && (amd64 || arm64)

package abi

import (
	"math"
	"runtime"
	"sync"
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

// Dup returns a communicator of the same ranks. It is collective, and blocks until all ranks have called it.
func (c *Comm) Dup() (*Comm, error) {
	d := &Comm{lib: c.lib}
	escape(d)
	if err := c.lib.check("MPI_Comm_dup", call(c.lib.calls.commDup, c.handle, address(&d.handle))); err != nil {
		return nil, err
	}
	return d, d.describe()
}

// Free ends a communicator that Dup made. It is collective.
func (c *Comm) Free() error {
	escape(c)
	return c.lib.check("MPI_Comm_free", call(c.lib.calls.commFree, address(&c.handle)))
}

// arguments are those of calls that are made often.
var arguments = sync.Pool{New: func() any { return new([6]uintptr) }}

// AllReduce reduces the vectors of all ranks, count elements of type t, into the vector of each, by the library's own
// algorithm. It is collective, and blocks until the ranks that the algorithm needs have called it.
func (c *Comm) AllReduce(vector []byte, count int, t DataType, op Op) error {
	switch {
	case len(vector) > math.MaxInt32:
		return errLong
	case count == 0:
		vector = []byte{0} // an address is required
	}
	l, first := c.lib, &vector[0]
	escape(first)
	args := arguments.Get().(*[6]uintptr)
	*args = [6]uintptr{l.inPlace, address(first), number(count), l.types[t], l.ops[op], c.handle}
	err := l.check("MPI_Allreduce", call(l.calls.allreduce, args[:]...))
	arguments.Put(args)
	runtime.KeepAlive(vector)
	return err
}
