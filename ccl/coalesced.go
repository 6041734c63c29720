package ccl

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl/internal/fingerprint"
)

// AllReduceCoalesced is AllReduce, in place, of many tensors in one call.
//
// Their number and lengths are the same on all ranks, which is checked before any data moves. Short
// tensors travel together, which costs much less than a call for each; the bits of algorithms other
// than direct depend on which tensors travel together. Tensors do not overlap. Some may be empty,
// but not all.
//
// Rejected with *InvalidBufferSizeError, *InvalidArgumentError (overlap) or ErrNotImplemented.
// Fails with *CollectiveFailedError; the tensors are then unspecified, unless the cause is a
// *MismatchError.
func AllReduceCoalesced[T Element](ctx context.Context, c *Communicator, tensors [][]T, op Op, opts ...CallOption) error {
	a := arguments{coll: CollAllReduce, dtype: DTypeOf[T](), op: op}
	if workOf(opts) != nil {
		return c.makeCall(ctx, &a, &lists{tensors: appendBuffers(nil, tensors)}, opts)
	}
	if err := c.start(ctx, a.coll, opts); err != nil {
		return err
	}
	c.engine.scratch.tensors = appendBuffers(c.engine.scratch.tensors[:0], tensors) // not before: another call may have used them
	return c.engine.end(c.engine.allReduceCoalesced(ctx, &a, c.engine.scratch.tensors, opts))
}

func appendBuffers[T Element](buffers []Buffer, tensors [][]T) []Buffer {
	for _, t := range tensors {
		buffers = append(buffers, bufferOf(t))
	}
	return buffers
}

// Tensors shorter than packBytes travel together, up to bundleBytes at a time. Copying them to one
// buffer and back costs less than a call for each; copying longer ones costs more.
const (
	packBytes   = 64 << 10
	bundleBytes = 1 << 20
)

func (e *engine) allReduceCoalesced(ctx context.Context, a *arguments, tensors []Buffer, opts []CallOption) error {
	if err := e.checkCoalesced(a, tensors); err != nil {
		return e.rejectCall(a, opts, err)
	}
	lengths := uint64(len(tensors))
	for _, t := range tensors {
		lengths = fingerprint.Mix(lengths ^ uint64(t.Len()))
	}

	e.scratch.coalesced = tensors
	var err error
	for err == nil && len(tensors) > 0 {
		n := bundle(tensors)
		err = e.reduceBundle(ctx, a, tensors[:n], lengths, opts)
		tensors = tensors[n:]
	}
	e.scratch.coalesced = nil // not deferred: abandon does it for a kernel that does not return
	return err
}

func (e *engine) checkCoalesced(a *arguments, tensors []Buffer) error {
	const operation = "all_reduce_coalesced"
	total, spans := 0, e.scratch.spans[:0]
	for _, t := range tensors {
		total += t.Len()
		if t.Len() > 0 {
			spans = append(spans, t.data)
		}
	}

	e.scratch.spans = spans
	if total == 0 {
		return &InvalidBufferSizeError{Operation: operation, Buffer: "tensors", Expected: 1, Actual: 0, OrMore: true}
	}

	slices.SortFunc(spans, comparePlaces)
	for i := range len(spans) - 1 {
		if overlap(spans[i], spans[i+1]) {
			return &InvalidArgumentError{operation, fmt.Sprintf("two of the tensors, of %d and %d bytes, overlap", len(spans[i]), len(spans[i+1]))}
		}
	}

	if e.isDebug {
		if err := checkBools(operation, a.dtype, tensors...); err != nil {
			return err
		}
	}
	return a.op.Check(a.coll, a.dtype)
}

// bundle returns how many of the tensors travel together.
func bundle(tensors []Buffer) int {
	bytes := 0
	for i, t := range tensors {
		bytes += len(t.data)
		if i > 0 && (len(t.data) >= packBytes || bytes > bundleBytes) {
			return i
		}
		if len(t.data) >= packBytes {
			return i + 1
		}
	}
	return len(tensors)
}

// reduceBundle reduces tensors that travel together.
func (e *engine) reduceBundle(ctx context.Context, a *arguments, tensors []Buffer, lengths uint64, opts []CallOption) error {
	whole := tensors[0]
	if len(tensors) > 1 {
		n := 0
		for _, t := range tensors {
			n += t.Len()
		}
		whole.data = e.scratch.bundled.Bytes(n << whole.shift)
		at := whole.data
		for _, t := range tensors {
			at = at[copy(at, t.data):]
		}
	}

	if whole.Len() == 0 {
		return nil // on all ranks
	}
	vector := arguments{dtype: a.dtype, op: a.op, send: whole}
	r := e.ask(a.coll, a.dtype, e.prepareInput(&vector), whole, opts)
	r.op, r.lengths = a.op, lengths
	// The first tensor represents all: ranks that share their tensors share this one.
	r.writes = tensors[slices.IndexFunc(tensors, func(t Buffer) bool { return t.Len() > 0 })].data
	if err := e.step(ctx, r); err != nil || len(tensors) == 1 {
		return err
	}
	from := whole.data
	for _, t := range tensors {
		from = from[copy(t.data, from):]
	}
	return nil
}
