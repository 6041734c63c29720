package transport

// Recorder is implemented by endpoints with memory in which the ranks record what they do, for
// readers after a failure.
type Recorder interface {
	// Records returns that memory. Each rank calls it at most once, before it closes the endpoint. An
	// error means that this rank cannot have it, and leaves the endpoint as it was.
	Records() (Records, error)
}

// Records is memory in which each rank of a job has a part. It stays until this rank frees it, also
// after its endpoint was freed, and keeps what a rank has written after that rank has left or died.
type Records interface {
	// Job identifies the job among those of the machine: letters, digits, ".", "_" and "-". It is
	// the same on all ranks, also of several nodes.
	Job() string
	// Part returns a rank's part, at first all zero; nil for a rank on another node (see Nodes). It
	// is a multiple of 4096 bytes, at least 16384, aligned to 8. Only that rank writes to it; the
	// others may read it at any time.
	Part(rank int) []byte
	// Vanished is FaultGuard.Vanished for this memory. Once it has returned an error the parts are
	// private memory, all zero.
	Vanished(v any) error
	// Free releases the memory for this rank. Preconditions: no part is in use.
	Free() error
}
