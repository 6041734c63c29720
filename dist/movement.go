package dist

import "github.com/goccl/goccl/ccl"

// Broadcast copies rank src's tensor to the tensors of all ranks, which have the same
// length and type. Length 0 is allowed. A src that is not in the group is rejected
// with *InvalidRootError.
func Broadcast[T ccl.Element](tensor []T, src int, opts ...CallOption) error {
	c := prepare(opts)
	return c.rooted("broadcast", src, ccl.Broadcast(c.ctx, c.comm, tensor, c.root(src), c.opts[:]...))
}

// AllGather copies the inputs of all ranks to output on every rank: rank r's to
// output[r*len(input):]. len(input) is the same on all ranks and may be 0; len(output)
// is len(input) times the number of ranks. input may be exactly the rank's own block of
// output and must otherwise not overlap it (torch.distributed.all_gather_into_tensor).
//
// Wrong lengths are rejected with *InvalidBufferSizeError, overlaps with
// *InvalidArgumentError.
func AllGather[T ccl.Element](output, input []T, opts ...CallOption) error {
	c := prepare(opts)
	return c.result(ccl.AllGather(c.ctx, c.comm, input, output, c.opts[:]...))
}

// AllGatherV is AllGather with inputs of different lengths, which lie in output one
// after the other in rank order: rank r's has counts[r] elements, which may be 0.
// len(input) is the caller's own count, len(output) at least the sum of counts, and
// counts is the same on all ranks.
//
// It has the errors of AllGather, and rejects negative counts with
// *InvalidArgumentError.
func AllGatherV[T ccl.Element](output, input []T, counts []int, opts ...CallOption) error {
	c := prepare(opts)
	return c.result(ccl.AllGatherV(c.ctx, c.comm, input, output, counts, nil, c.opts[:]...))
}

// Gather is AllGather for rank dst alone. On other ranks output must be nil or empty.
//
// It has the errors of AllGather, and rejects a dst that is not in the group with
// *InvalidRootError.
func Gather[T ccl.Element](output, input []T, dst int, opts ...CallOption) error {
	c := prepare(opts)
	return c.rooted("gather", dst, ccl.Gather(c.ctx, c.comm, input, output, c.root(dst), c.opts[:]...))
}

// GatherV is Gather with inputs of different lengths, which only rank dst needs to
// know: its counts[r] is the length of rank r's input, and len(output) is at least the
// sum of counts. On other ranks output and counts must be nil or empty.
//
// It has the errors of Gather. If counts differ from the lengths of the inputs, all
// ranks get *MismatchError, and the group is intact.
func GatherV[T ccl.Element](output, input []T, counts []int, dst int, opts ...CallOption) error {
	c := prepare(opts)
	return c.rooted("gather_v", dst, ccl.GatherV(c.ctx, c.comm, input, output, counts, nil, c.root(dst), c.opts[:]...))
}

// Scatter distributes the input of rank src: rank r's output gets the elements from
// r*len(output) on. len(output) is the same on all ranks and may be 0; src's len(input)
// is len(output) times the number of ranks. On other ranks input must be nil or empty.
// src's output may be exactly its own block of input and must otherwise not overlap it.
//
// It has the errors of Gather.
func Scatter[T ccl.Element](output, input []T, src int, opts ...CallOption) error {
	c := prepare(opts)
	return c.rooted("scatter", src, ccl.Scatter(c.ctx, c.comm, input, output, c.root(src), c.opts[:]...))
}

// ScatterV is Scatter with blocks of different lengths: rank r's output, of length
// counts[r], gets the elements of input that follow the blocks of ranks 0 to r-1. Only rank
// src needs counts; on other ranks input and counts must be nil or empty.
//
// It has the errors of GatherV.
func ScatterV[T ccl.Element](output, input []T, counts []int, src int, opts ...CallOption) error {
	c := prepare(opts)
	return c.rooted("scatter_v", src, ccl.ScatterV(c.ctx, c.comm, input, counts, nil, output, c.root(src), c.opts[:]...))
}

// AllToAll gives every rank its block of every input: block r of rank s's input
// goes to block s of rank r's output. input and output do not overlap and have the same
// length on all ranks, a multiple of the number of ranks
// (torch.distributed.all_to_all_single).
//
// It has the errors of AllGather, and rejects a length that is not a multiple with
// *InvalidArgumentError.
func AllToAll[T ccl.Element](output, input []T, opts ...CallOption) error {
	c := prepare(opts)
	return c.result(ccl.AllToAll(c.ctx, c.comm, input, output, c.opts[:]...))
}

// AllToAllV is AllToAll with blocks of different lengths: inputCounts[r] elements of
// input, after the blocks for ranks 0 to r-1, go to rank r, and outputCounts[s]
// elements of output, after the blocks of ranks 0 to s-1, come from rank s. Counts
// may be 0.
//
// It has the errors of AllToAll. If one rank sends a different count than another
// expects, all ranks get *MismatchError, which names the first such pair, and the group
// is intact.
func AllToAllV[T ccl.Element](output, input []T, outputCounts, inputCounts []int, opts ...CallOption) error {
	c := prepare(opts)
	return c.result(ccl.AllToAllV(c.ctx, c.comm, input, inputCounts, nil, output, outputCounts, nil, c.opts[:]...))
}
