package dist

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl"
)

// ReduceOp is a reduction.
type ReduceOp = ccl.Op

// The reductions. Integers wrap; Avg is Sum and then one division by the number
// of ranks, which truncates for integers; Min and Max propagate NaN and order
// -0 below +0. No algorithm has the bitwise ones yet: a call with one of them
// returns ErrNotImplemented before any data moves.
const (
	Sum     = ccl.Sum
	Avg     = ccl.Avg
	Product = ccl.Product
	Min     = ccl.Min
	Max     = ccl.Max
	BAnd    = ccl.BAnd
	BOr     = ccl.BOr
	BXor    = ccl.BXor
)

// CallOption is an option of a single call. Of two of a kind the later holds.
type CallOption struct {
	group     *ProcessGroup
	grouped   bool
	ctx       context.Context
	timeout   time.Duration
	algorithm string
}

// WithGroup makes the call act on g, from any goroutine. A nil g makes it
// return *InvalidArgumentError, one that was destroyed ErrNotInitialized.
func WithGroup(g *ProcessGroup) CallOption { return CallOption{group: g, grouped: true} }

// WithContext ends the call when ctx is done, with ctx's error. If the call was
// waiting, that fails the group on all ranks. Without it, or if ctx is nil, the
// context of SpawnContext counts.
func WithContext(ctx context.Context) CallOption { return CallOption{ctx: ctx} }

// WithCallTimeout takes the place of the configured timeout; 0 leaves that as it
// is, a negative d waits for ever. The ranks of a call need not agree on it.
func WithCallTimeout(d time.Duration) CallOption { return CallOption{timeout: d} }

// WithCallAlgorithm chooses an entry of ccl.yaml's algorithms for this call, on
// all ranks alike. The empty name leaves the choice to ccl.yaml.
func WithCallAlgorithm(entry string) CallOption { return CallOption{algorithm: entry} }

func merge(opts []CallOption) (o CallOption) {
	for i := range opts {
		add := &opts[i]
		if add.grouped {
			o.group, o.grouped = add.group, true
		}
		if add.ctx != nil {
			o.ctx = add.ctx
		}
		if add.timeout != 0 {
			o.timeout = add.timeout
		}
		if add.algorithm != "" {
			o.algorithm = add.algorithm
		}
	}
	return o
}

// call is what a collective of this package hands on to package ccl.
type call struct {
	comm *ccl.Communicator
	ctx  context.Context
	opts [2]ccl.CallOption
	n    int // how many of opts there are
}

func prepare(opts []CallOption) (c call, err error) {
	o := merge(opts)
	g := o.group
	if o.grouped {
		err = g.usable()
	} else {
		g, err = Default()
	}
	if err != nil {
		return c, err
	}
	c.comm, c.ctx = g.comm, o.ctx
	if c.ctx == nil {
		c.ctx = g.rank.job.ctx
	}
	if o.timeout != 0 {
		c.opts[c.n] = ccl.WithTimeout(o.timeout)
		c.n++
	}
	if o.algorithm != "" {
		c.opts[c.n] = ccl.WithAlgorithm(o.algorithm)
		c.n++
	}
	return c, nil
}

// AllReduce reduces the ranks' tensors element by element; the result takes the
// place of the tensor on every rank, the same bits everywhere. All ranks bring
// the same number of elements, of the same type, and the same op.
//
// Refused, with the group unharmed if all ranks are: a nil tensor with
// ErrNotDeployed, an empty one with *InvalidBufferSizeError, an op that the
// algorithm does not have with ErrNotImplemented. Otherwise the package comment
// says what can fail.
func AllReduce[T ccl.Element](tensor []T, op ReduceOp, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	err = ccl.AllReduce(c.ctx, c.comm, tensor, tensor, op, c.opts[:c.n]...)
	if err != nil && len(tensor) == 0 {
		err = emptyTensor(tensor == nil, err)
	}
	return err
}

// emptyTensor says in this package's words what package ccl found wrong with a
// tensor without elements. It is asked even for a nil one, so that the call
// counts on this rank as it does on the others.
func emptyTensor(isNil bool, err error) error {
	if _, ok := errors.AsType[*InvalidBufferSizeError](err); !ok {
		return err
	}
	if isNil {
		return fmt.Errorf("dist: all_reduce: %w: it is nil: %w", ErrNotDeployed, err)
	}
	return fmt.Errorf("dist: all_reduce: the tensor has no shards: %w", err)
}

// Broadcast copies rank src's tensor to all ranks, which bring one of the same
// length and type. Length 0 is allowed. A src that is no rank is refused with
// *InvalidRootError.
func Broadcast[T ccl.Element](tensor []T, src int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return ccl.Broadcast(c.ctx, c.comm, tensor, src, c.opts[:c.n]...)
}

// AllGatherV puts the inputs of all ranks into output on every rank, one after
// the other in rank order: rank r brings counts[r] elements, which may be 0.
// len(input) is the caller's own count, len(output) at least the sum of all,
// and counts the same on all ranks; if not, the call is refused with
// *InvalidBufferSizeError. input may lie in output at its own place and must
// otherwise be apart from it.
func AllGatherV[T ccl.Element](output, input []T, counts []int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return ccl.AllGatherV(c.ctx, c.comm, input, output, counts, nil, c.opts[:c.n]...)
}

// Barrier returns when all ranks of the group have called it.
func Barrier(opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return c.comm.Barrier(c.ctx, c.opts[:c.n]...)
}
