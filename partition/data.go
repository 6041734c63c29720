package partition

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/object"
)

// BroadcastData returns root's data on all workers of p.
//
// Receivers need to know neither the lengths of slices in it nor, with an interface type, its type:
// package encoding/gob carries it, with its rules (gob.Register for types other than Go's basic
// ones and slices of these). Data is for descriptions, not for tensors: package primitive moves
// those.
//
// Returns ErrInactive on an inactive worker, without communication. Rejected with
// *ccl.InvalidRootError, or *ccl.InvalidArgumentError if the encoded data has more than 64 MiB. If
// root's data cannot be encoded, or would lose something on its way (a field that is not exported
// and not zero), root gets an error with the path to it and the others *ccl.MismatchError with its
// text.
func BroadcastData[T any](ctx context.Context, p *Partition, data T, root int) (T, error) {
	if !p.Active() {
		return data, fmt.Errorf("partition: broadcast_data: %w", ErrInactive)
	}
	var text []byte
	if p.Rank() == root {
		var err error
		if text, err = encode("broadcast_data", data); err != nil {
			return data, p.comm.Reject(ctx, err)
		}
	}

	length := []int{len(text)}
	if err := ccl.Broadcast(ctx, p.comm, length, root); err != nil {
		return data, err
	}
	if p.Rank() != root {
		text = make([]byte, min(length[0], maxData))
	}
	if err := ccl.Broadcast(ctx, p.comm, text, root); err != nil || p.Rank() == root {
		return data, err
	}
	return object.Decode[T](text, root)
}

// BroadcastDataFrom is BroadcastData from a worker of sub, a partition of some workers of p: root
// is its rank there. All workers of p call it with the same root; sub is inactive on those that are
// not in it, or nil.
//
// Returns ErrInactive where p is inactive, without communication. If no worker has the rank in sub,
// all get *ccl.InvalidRootError.
func BroadcastDataFrom[T any](ctx context.Context, p, sub *Partition, data T, root int) (T, error) {
	if !p.Active() {
		return data, fmt.Errorf("partition: broadcast_data: %w", ErrInactive)
	}
	if err := compareValue(ctx, p.comm, "root", root); err != nil {
		return data, err
	}
	ranks := make([]int, p.Size())
	if err := ccl.AllGather(ctx, p.comm, []int{sub.Rank()}, ranks); err != nil {
		return data, err
	}

	size, source := 0, -1
	for worker, rank := range ranks {
		if rank >= 0 {
			size++
		}
		if rank != root || root < 0 {
			continue
		}
		if source >= 0 {
			return data, p.share([]int{source, worker}, "broadcast_data", "workers pass different partitions: workers %d and %d are both rank %d of it", source, worker, root)
		}

		source = worker
	}
	if source < 0 {
		return data, failure.Share(&ccl.InvalidRootError{Root: root, Size: size}, p.Workers())
	}
	return BroadcastData(ctx, p, data, source)
}

// AllGatherData returns the data of all workers of p, by their ranks. As for BroadcastData, workers
// need to know neither the lengths nor, with an interface type, the types of the others' data.
//
// Returns ErrInactive on an inactive worker, without communication. If a worker's data cannot be
// encoded, as for BroadcastData, or has more than 64 MiB, all workers get *agree.RejectedError, and
// p stays usable.
func AllGatherData[T any](ctx context.Context, p *Partition, data T) ([]T, error) {
	if !p.Active() {
		return nil, fmt.Errorf("partition: all_gather_data: %w", ErrInactive)
	}
	return gather(ctx, p.comm, "all_gather_data", data)
}

// gather returns the data of all ranks of c.
func gather[T any](ctx context.Context, c *ccl.Communicator, operation string, data T) ([]T, error) {
	text, err := encode(operation, data)
	lengths, err := agree.Exchange(ctx, c, err, []int{len(text)})
	if err != nil {
		return nil, err
	}
	total := 0
	for _, n := range lengths {
		total += n
	}

	texts := make([]byte, total)
	if err := ccl.AllGatherV(ctx, c, text, texts, lengths, nil); err != nil {
		return nil, err
	}
	return object.DecodeAll[T](texts, lengths)
}

// maxData bounds the encoded data of a worker, in bytes.
const maxData = 64 << 20

func encode[T any](operation string, data T) ([]byte, error) {
	text, err := object.Encode(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("partition: %s: %w", operation, err)
	case len(text) > maxData:
		return nil, invalid(operation, "the data has %d bytes, and at most %d are possible: tensors are for package primitive", len(text), maxData)
	}
	return text, nil
}
