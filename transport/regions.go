package transport

// Regions is implemented by endpoints whose ranks do not see each other's memory, but
// can have memory that all of them see. Exposed buffers that lie in such memory on all
// ranks are shown in place, by Memory.
type Regions interface {
	// Region makes memory of size bytes, at least 1, that is zero at first and that all
	// ranks see. It is collective: all ranks call it with the same size, inside of a call
	// that is Exposed, and it returns when all have it. *AllocationFailedError, where some
	// rank does not get its part, is the result of all ranks, and the call goes on; other
	// errors are those of a wait.
	Region(size int) (Region, error)
}

// Region is memory that all ranks see.
type Region interface {
	// Bytes is the memory, the same on all ranks but for where it begins.
	Bytes() []byte
	// Free says that this rank has done with the memory: none of its calls that are to
	// come has buffers in it. The memory is given back when all ranks have said so, or when
	// they free their endpoints; until then others may show theirs. Free never waits, may be
	// called by any goroutine at any time, and twice.
	Free() error
}
