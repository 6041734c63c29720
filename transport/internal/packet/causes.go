package packet

import (
	"encoding/json"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// causes implements groupsync.Causes: the failure that each rank has reported, and its reasons for
// calls that it rejected.
type causes struct {
	send func(seq uint64, first bool, why string) // sends this rank's reason to the others

	mu       interleave.Mutex
	failures []*transport.Failure
	reasons  [][2]reason // the first of a run, and the latest
}

// reason is why a rank rejected a call.
type reason struct {
	seq uint64
	why string
}

func (c *causes) Store(rank int, f *transport.Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures[rank] = f
}

func (c *causes) Load(rank int) *transport.Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures[rank]
}

// StoreReason stores why this process's rank rejects a call, and sends it to the others.
func (c *causes) StoreReason(rank int, seq uint64, first bool, why string) {
	c.storeReason(rank, seq, first, why)
	c.send(seq, first, why)
}

func (c *causes) storeReason(rank int, seq uint64, first bool, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.reasons[rank]
	if first {
		r[0] = reason{seq, why}
	}
	r[1] = reason{seq, why}
}

func (c *causes) LoadReason(rank int, seq uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.reasons[rank] {
		if r.seq == seq {
			return r.why
		}
	}
	return ""
}

// encodeFailure returns a failure as it travels: without its error value, which does not leave the
// process.
func encodeFailure(f *transport.Failure) []byte {
	sent := *f
	sent.Cause = nil
	sent.Text = sent.Text[:min(len(sent.Text), 4*transport.TextBytes)]
	sent.Ranks, sent.Missing = sent.Ranks[:min(len(sent.Ranks), sentRanks)], sent.Missing[:min(len(sent.Missing), sentRanks)]
	b, err := json.Marshal(&sent)
	if err != nil {
		panic(err) // it has numbers and strings only
	}
	return b
}

// sentRanks is how many ranks of each list of a failure travel.
const sentRanks = 64

// decodeFailure returns what encodeFailure has made, of a rank of size.
func decodeFailure(b []byte, size int) (*transport.Failure, error) {
	f := new(transport.Failure)
	if err := json.Unmarshal(b, f); err != nil {
		return nil, err
	}
	if f.Kind == 0 || f.Kind > transport.FailureOverlap || f.By < 0 || f.By >= size {
		return nil, errBadPacket
	}
	return f, nil
}
