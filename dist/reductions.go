package dist

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// AllReduce reduces the ranks' tensors element by element; the result takes the
// place of the tensor on every rank, the same bits everywhere. All ranks bring
// the same number of elements, of the same type, and the same op.
//
// Refused, with the group unharmed if all ranks are: a nil tensor with
// ErrNotDeployed, an empty one with *InvalidBufferSizeError, an op that the type
// or the algorithm does not have with ErrNotImplemented. Otherwise the package
// comment says what can fail.
func AllReduce[T ccl.Element](tensor []T, op ReduceOp, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return deployed(tensor, ccl.AllReduce(c.ctx, c.comm, tensor, tensor, op, c.opts[:c.n]...))
}

// deployed says in this package's words what package ccl found wrong with the
// input of a reduction if that has no elements. It is asked after the call even
// for a nil one, so that the call counts on this rank as it does on the others.
func deployed[T ccl.Element](input []T, err error) error {
	if err == nil || len(input) > 0 {
		return err
	}
	size, ok := errors.AsType[*InvalidBufferSizeError](err)
	switch {
	case !ok:
		return err
	case input == nil:
		return fmt.Errorf("dist: %s: %w: it is nil: %w", size.Operation, ErrNotDeployed, err)
	default:
		return fmt.Errorf("dist: %s: the tensor has no shards: %w", size.Operation, err)
	}
}

// AllReduceCoalesced is AllReduce of many tensors in one call, for less than a call
// of each costs. Their number and lengths are the same on all ranks; single ones
// may be empty. Unlike torch's, which it is named after, it is checked: ranks that
// bring other lengths are all told so, by *MismatchError, before anything moves.
//
// It has the errors of AllReduce, and refuses tensors that overlap with
// *InvalidArgumentError.
func AllReduceCoalesced[T ccl.Element](tensors [][]T, op ReduceOp, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return ccl.AllReduceCoalesced(c.ctx, c.comm, tensors, op, c.opts[:c.n]...)
}

// Reduce is AllReduce for rank dst alone: the result takes the place of its
// tensor, and those of the others stay as they are (torch leaves what becomes of
// them open).
//
// It has the errors of AllReduce; a dst that is not in the group is refused with
// *InvalidRootError.
func Reduce[T ccl.Element](tensor []T, dst int, op ReduceOp, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	root := c.root(dst)
	var output []T
	if root == c.comm.Rank() {
		output = tensor
	}
	return deployed(tensor, c.rooted(dst, ccl.Reduce(c.ctx, c.comm, tensor, output, op, root, c.opts[:c.n]...)))
}

// ReduceScatter reduces the ranks' inputs element by element and deals the
// result out: rank r's output gets the elements from r*len(output) on. len(output)
// is the same on all ranks, at least 1, and len(input) as many times that as there
// are ranks. output may be exactly the rank's own block of input and must
// otherwise be apart from it; input stays as it is elsewhere
// (torch.distributed.reduce_scatter_tensor).
//
// It has the errors of AllReduce; wrong lengths are refused with
// *InvalidBufferSizeError, which calls input send and output recv, and overlaps
// with *InvalidArgumentError.
func ReduceScatter[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return deployed(input, ccl.ReduceScatter(c.ctx, c.comm, input, output, op, c.opts[:c.n]...))
}

// ReduceScatterV is ReduceScatter with blocks of unlike lengths: rank r's output
// gets the counts[r] elements that follow those of the ranks before it. counts
// is the same on all ranks and may have zeros; len(output) is the caller's own
// count, len(input) the sum of all, at least 1.
//
// It has the errors of ReduceScatter, and refuses negative counts with
// *InvalidArgumentError.
func ReduceScatterV[T ccl.Element](output, input []T, op ReduceOp, counts []int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return deployed(input, ccl.ReduceScatterV(c.ctx, c.comm, input, output, op, counts, c.opts[:c.n]...))
}

// Scan gives rank r the reduction of the inputs of ranks 0 to r. input and output
// have the same length, at least 1, on all ranks; they are the same slice or
// apart. Avg is not implemented: it would be the mean of another number of inputs
// on every rank. torch has no such call, MPI calls it MPI_Scan.
//
// It has the errors of ReduceScatter.
func Scan[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return deployed(input, ccl.Scan(c.ctx, c.comm, input, output, op, c.opts[:c.n]...))
}

// ExScan is Scan without the rank's own input: rank r gets the reduction of those
// of ranks 0 to r-1. Rank 0's output, for which there is nothing, stays as it is.
func ExScan[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return deployed(input, ccl.ExScan(c.ctx, c.comm, input, output, op, c.opts[:c.n]...))
}
