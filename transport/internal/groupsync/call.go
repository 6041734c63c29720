package groupsync

import (
	"context"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// call is what a rank knows of its current call.
type call struct {
	seq      uint64
	entered  uint64 // the last call that was not rejected
	rejected uint64 // first of the calls that were rejected since the last entry, or 0
	exposed  bool   // it exposes memory
	unended  uint32 // low bits of the last call whose completion this rank gave up waiting for
	ctx      context.Context
	ctxDone  <-chan struct{}
}

// begin makes e the current call.
func (c *call) begin(e *transport.Arrival) {
	c.seq, c.entered = e.Seq, e.Seq
	c.exposed = e.Exposed
	c.ctx, c.ctxDone = e.Ctx, e.Ctx.Done()
}

// checkContext returns cancelled if the call's context has ended.
func (c *call) checkContext() interruption {
	if c.ctxDone == nil {
		return none
	}
	interleave.Step()
	select {
	case <-c.ctxDone:
		return cancelled
	default:
		return none
	}
}
