//go:build linux && (amd64 || arm64)

package mpi

// wire carries packets between processes, in order between each pair. Its methods may be called
// concurrently, but one goroutine at a time calls poll.
type wire interface {
	// rank and size are constant.
	rank() int
	size() int
	// packet returns n bytes, at most packetBytes, for send.
	packet(n int) []byte
	// send starts to send a packet, which then belongs to the wire. It does not wait. The error is a
	// *peerError if it concerns that process alone, also when poll returns it later.
	send(to int, b []byte) error
	// poll calls deliver with packets that have arrived and the process that has sent them, and makes
	// others progress. If deliver returns true it keeps the packet, until release. found reports
	// whether there was a packet.
	poll(deliver func(from int, b []byte) (isKept bool)) (found bool, err error)
	// idle reports whether everything that was sent has left this process.
	idle() bool
	// release gives a packet back that deliver keeps.
	release(b []byte)
}

// peerError is an error of messages to one process, which MPI no more reaches.
type peerError struct {
	rank int
	err  error
}

func (e *peerError) Error() string { return e.err.Error() }
func (e *peerError) Unwrap() error { return e.err }
