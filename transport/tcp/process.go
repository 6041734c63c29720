package tcp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/goccl/goccl/transport/internal/packet"
)

// Name is the transport's name in ccl.yaml.
const Name = "tcp"

// connections are those of a process to all others of its job. They are open, with nothing more
// to read of how they were made.
type connections struct {
	rank int
	// node is the number of this process's node. Those of one node, and of one machine, share memory.
	node int
	// conns are, by rank, the connections to each other process: one for packets, and perhaps one
	// more by which nothing is sent. The kernel keeps asking the other host by the last one whether it
	// is there.
	conns [][]net.Conn
	// pids are, by rank, the ids of the processes; nil: they say so when they join.
	pids []int
	// silence is how long another host may not answer; 0: 10 s.
	silence time.Duration
	// pieceBytes is the length in bytes of the longest piece of a view; 0: 1 MiB.
	pieceBytes int
}

// longestPieceBytes is the length in bytes of the longest piece of a view: long, because every
// piece costs the delay of the link, or of a process that wakes.
const longestPieceBytes = 1 << 20

// process is this process among those of the job.
type process struct {
	*packet.Process
	wire    *wire
	silence time.Duration
}

// newProcess returns this process. The connections then belong to it, unless there is an error.
func newProcess(c connections) (*process, error) {
	c.silence, c.pieceBytes = cmp.Or(c.silence, 10*time.Second), cmp.Or(c.pieceBytes, longestPieceBytes)
	w, err := newWire(c.rank, c.conns, c.silence)
	if err != nil {
		return nil, fmt.Errorf("tcp: rank %d: %w", c.rank, err)
	}
	return &process{packet.NewProcess(packet.Config{Name: Name, Wire: w, Node: c.node, PIDs: c.pids, PieceBytes: c.pieceBytes}), w, c.silence}, nil
}

// leave closes the connections. All endpoints were closed. It waits until the other processes leave
// as well, ctx ends, or they must have got all that was sent to them.
func (p *process) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.silence)
	defer cancel()
	p.SayGoodbye(ctx)
	p.Shut()
	return p.wire.close(ctx)
}
