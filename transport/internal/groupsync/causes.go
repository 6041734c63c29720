package groupsync

import (
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// Causes stores the ranks' failures and their reasons for rejecting calls. Each rank has its
// own slot for a failure, which it fills before it tries to make the failure the group's.
type Causes interface {
	// Store stores rank's failure. Several goroutines may store it at a time: the same one.
	Store(rank int, f *transport.Failure)
	// Load returns rank's failure.
	Load(rank int) *transport.Failure
	// StoreReason stores why rank rejects call seq. It replaces the reason for rank's latest
	// rejected call. If the call is the first of a run, it replaces the reasons of the
	// previous run. It does not touch failures.
	StoreReason(rank int, seq uint64, first bool, why string)
	// LoadReason returns why rank rejected call seq, or "" if the reason has been replaced.
	// The rank may write another reason at the same time.
	LoadReason(rank int, seq uint64) string
}

// NewCauses returns the Causes of ranks that are goroutines.
func NewCauses(ranks int) Causes {
	return &causes{
		failures: make([]interleave.Pointer[transport.Failure], ranks),
		reasons:  make([][2]interleave.Pointer[reason], ranks),
	}
}

type causes struct {
	failures []interleave.Pointer[transport.Failure]
	// reasons are by rank: why it rejected the first of the calls that it has rejected in a row, and
	// why the latest.
	reasons [][2]interleave.Pointer[reason]
}

// reason is why a rank rejected call seq. It is immutable.
type reason struct {
	seq uint64
	why string
}

func (c *causes) Store(rank int, f *transport.Failure) { c.failures[rank].Store(f) }
func (c *causes) Load(rank int) *transport.Failure     { return c.failures[rank].Load() }

func (c *causes) StoreReason(rank int, seq uint64, first bool, why string) {
	r := &c.reasons[rank][1]
	if first {
		r = &c.reasons[rank][0]
	}
	r.Store(&reason{seq, why})
}

func (c *causes) LoadReason(rank int, seq uint64) string {
	for i := range c.reasons[rank] {
		if r := c.reasons[rank][i].Load(); r != nil && r.seq == seq {
			return r.why
		}
	}
	return ""
}
