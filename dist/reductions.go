package dist

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// AllReduce reduces the ranks' tensors element by element and replaces every rank's
// tensor by the result, the same bits everywhere. All ranks pass the same number of
// elements, of the same type, and the same op.
//
// Rejected, with the group intact if all ranks are: a nil tensor with ErrNotDeployed, an
// empty one with *InvalidBufferSizeError, an op that the type or the algorithm does not
// support with ErrNotImplemented. See the package comment for other failures.
func AllReduce[T ccl.Element](tensor []T, op ReduceOp, opts ...CallOption) error {
	c := prepare(opts)
	return deployed(tensor, c.result(ccl.AllReduce(c.ctx, c.comm, tensor, tensor, op, c.opts[:]...)))
}

// deployed adds ErrNotDeployed to ccl's error for a nil input. The check comes after the
// call so that a rejected call still consumes a sequence number on this rank, as on all
// others.
func deployed[T ccl.Element](input []T, err error) error {
	if err == nil || input != nil {
		return err
	}
	if size, ok := errors.AsType[*InvalidBufferSizeError](err); ok {
		return &explained{size.Operation, fmt.Sprintf("%v: %s", ErrNotDeployed, ccl.Reason(err)), []error{ErrNotDeployed, err}}
	}
	return err
}

// AllReduceCoalesced is AllReduce of many tensors in one call, which costs less than a call for
// each.
//
// Their number and lengths are the same on all ranks; some may be empty. If ranks pass different
// lengths, all get *MismatchError before any data moves; torch's function does not check this. Its
// field "count" is the total of short tensors that travel together; if the totals agree, "counts"
// has the length of each tensor.
//
// It has the errors of AllReduce, and rejects overlapping tensors with
// *InvalidArgumentError.
func AllReduceCoalesced[T ccl.Element](tensors [][]T, op ReduceOp, opts ...CallOption) error {
	c := prepare(opts)
	return c.result(ccl.AllReduceCoalesced(c.ctx, c.comm, tensors, op, c.opts[:]...))
}

// Reduce is AllReduce for rank dst alone: the result replaces its tensor. Other ranks'
// tensors stay as they are (torch leaves them undefined).
//
// It has the errors of AllReduce, and rejects a dst that is not in the group with
// *InvalidRootError.
func Reduce[T ccl.Element](tensor []T, dst int, op ReduceOp, opts ...CallOption) error {
	c := prepare(opts)
	root := c.root(dst)
	return deployed(tensor, c.rooted("reduce", dst, ccl.Reduce(c.ctx, c.comm, tensor, onlyAt(&c, root, tensor), op, root, c.opts[:]...)))
}

// onlyAt returns the tensor on the root and nil on other ranks.
func onlyAt[T ccl.Element](c *call, root int, tensor []T) []T {
	if c.err == nil && root == c.comm.Rank() {
		return tensor
	}
	return nil
}

// ReduceScatter reduces the ranks' inputs element by element and scatters the
// result: rank r's output gets the elements from r*len(output) on. len(output)
// is the same on all ranks, at least 1; len(input) is len(output) times the number of
// ranks. output may be exactly the rank's own block of input and must otherwise not
// overlap it; the rest of input is unchanged (torch.distributed.reduce_scatter_tensor).
//
// It has the errors of AllReduce, and rejects wrong lengths with
// *InvalidBufferSizeError and overlaps with *InvalidArgumentError.
func ReduceScatter[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) error {
	c := prepare(opts)
	return deployed(input, c.result(ccl.ReduceScatter(c.ctx, c.comm, input, output, op, c.opts[:]...)))
}

// ReduceScatterV is ReduceScatter with blocks of different lengths: rank r's output
// gets the counts[r] elements that follow the blocks of ranks 0 to r-1. counts
// is the same on all ranks and may contain zeros; len(output) is the caller's own
// count, len(input) the sum of counts, at least 1.
//
// It has the errors of ReduceScatter, and rejects negative counts with
// *InvalidArgumentError.
func ReduceScatterV[T ccl.Element](output, input []T, op ReduceOp, counts []int, opts ...CallOption) error {
	c := prepare(opts)
	return deployed(input, c.result(ccl.ReduceScatterV(c.ctx, c.comm, input, output, op, counts, c.opts[:]...)))
}

// Scan gives rank r the reduction of the inputs of ranks 0 to r (MPI_Scan; torch has no
// such call). input and output have the same length, at least 1, on all ranks; they are
// the same slice or disjoint. Avg is not implemented: every rank would average a
// different number of inputs.
//
// It has the errors of ReduceScatter.
func Scan[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) error {
	c := prepare(opts)
	return deployed(input, c.result(ccl.Scan(c.ctx, c.comm, input, output, op, c.opts[:]...)))
}

// ExScan is Scan without the rank's own input: rank r gets the reduction of the inputs
// of ranks 0 to r-1. Rank 0's output is unchanged.
func ExScan[T ccl.Element](output, input []T, op ReduceOp, opts ...CallOption) error {
	c := prepare(opts)
	return deployed(input, c.result(ccl.ExScan(c.ctx, c.comm, input, output, op, c.opts[:]...)))
}
