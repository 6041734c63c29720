package packet

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/transport"
)

// records is the flight recorder of the ranks of this process's node. It shows nothing of other
// nodes.
type records struct {
	transport.Records
	job  string
	here []int // by part
}

// errNoRecords is the error of a group that was made of another one, in whose records its ranks
// have their parts.
var errNoRecords = errors.New("a group that was made of another one has no records of its own")

// Records implements transport.Recorder, in the memory of the node.
func (ep *Endpoint) Records() (transport.Records, error) {
	if !ep.group.isWorld {
		return nil, errNoRecords
	}
	n := ep.group.nodes
	r := &records{job: n.job, here: n.here}
	if n.memory == nil {
		r.Records = flight.NewHeap(1)
		return r, nil
	}

	memory, err := n.memory.(transport.Recorder).Records()
	if err != nil {
		return nil, err
	}
	r.Records = memory
	return r, nil
}

// Job implements transport.Records. It is the same on all nodes.
func (r *records) Job() string { return r.job }

// Part implements transport.Records.
func (r *records) Part(rank int) []byte {
	index, isHere := slices.BinarySearch(r.here, rank)
	if !isHere {
		return nil
	}
	return r.Records.Part(index)
}

// Vanished implements transport.FaultGuard. The endpoint has no memory that vanishes, but the
// records are in some.
func (ep *Endpoint) Vanished(any) error { return nil }

// memoryName names the memory of a node, by its first process, so that a launcher finds what ranks
// have left there that were killed.
func memoryName(transport string, first host) string {
	name := jobName(transport, first)
	if job := strings.TrimPrefix(os.Getenv("GOCCL_SHM_NAME"), "/"); job != "" {
		name = job + "-" + name
	}
	return name
}

// jobName names the job by its first process, or the one of a node.
func jobName(transport string, first host) string {
	return fmt.Sprintf("%s-%d-%.16s", transport, first.pid, first.token)
}
