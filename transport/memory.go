package transport

// Memory shows the buffers of other ranks in place.
type Memory interface {
	// Buffers returns the Send and Recv that a rank brought to the call entered last, which was
	// Exposed. They may be touched between Enter and Complete only.
	Buffers(rank int) (send, recv []byte)
	// Displs returns the Displs that a rank brought to that call. The caller must have claimed
	// the rank's body.
	Displs(rank int) []int
}

// Staging shows copies of other ranks' memory, in rounds: what the ranks put before a Flip is
// what all ranks see after it, until the next Flip. All ranks make the same calls of Flip.
type Staging interface {
	// PieceBytes is the length in bytes of the longest piece, a multiple of 16.
	PieceBytes() int
	// PutInput copies a piece of this rank's input, which may be empty, for the next round. It
	// may leave out the bytes lo to hi of the piece, which no other rank reads.
	PutInput(piece []byte, lo, hi int)
	// PutResult shows a result in the next round: bytes lo to hi of the piece, which this rank has
	// stored to the Input of other ranks since the last Flip. Preconditions: no other rank reads or
	// stores these bytes of any Input of this round. A rank without a result need not call it.
	PutResult(lo, hi int)
	// Flip waits for all ranks. If Enter already counted as a Flip (Arrival.Staged), the first
	// Flip of the call returns immediately.
	Flip() error
	// ResolveFlip ends a call that is not Exposed, after an error of its last Flip that Fail has
	// recorded. It returns when every other rank has arrived at this Flip or left the call; if a
	// kernel does not return, when the call's timeout has passed once more. isComplete reports
	// that all have arrived: the Flip has succeeded, on this rank as on all others.
	ResolveFlip() (isComplete bool)
	// Input returns the first n bytes that a rank put as its input before the last Flip, and where
	// the caller stores results for that rank; n is at most PieceBytes.
	Input(rank, n int) []byte
	// Result returns the result that another rank has shown by the last Flip: what it stored to
	// bytes lo to hi of this rank's Input of the round before. It is valid until this rank's next
	// PutInput.
	Result(rank int) (lo, hi int, result []byte)
}

// Parts is implemented by a Staging that sends pieces to other ranks, if it can send each rank
// less than the whole.
type Parts interface {
	// PutParts is PutInput of a piece of which rank reads the bytes lo to hi that part returns for
	// it, and no others: what Input shows of the rest is undefined. If the piece stays, the caller
	// does not change these bytes before the second Flip from then on, or the call, has ended, and
	// they need not be copied.
	PutParts(piece []byte, stays bool, part func(rank int) (lo, hi int))
}

// Regions is implemented by endpoints whose ranks do not see each other's memory, but can make
// memory that all of them see. If the buffers of an Exposed call lie in such memory on all
// ranks, Memory shows them in place.
type Regions interface {
	// Region makes size bytes of zeroed memory, at least 1, that all ranks see. It is collective: all
	// ranks call it with the same size, inside of an Exposed call, and it returns when all ranks have
	// the memory. If some rank does not get its part, all ranks get *AllocationFailedError and the
	// call goes on. The other errors are those of a wait.
	Region(size int) (Region, error)
}

// Region is memory that all ranks see.
type Region interface {
	// Bytes is the memory. Its contents are the same on all ranks; its address may differ.
	Bytes() []byte
	// Free ends this rank's use of the memory. Preconditions: no later call of this rank has
	// buffers in it. The memory is released when all ranks have called Free or freed their
	// endpoints. Free never waits. Any goroutine may call it at any time, also twice.
	Free() error
}
