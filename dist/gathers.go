package dist

import "github.com/goccl/goccl/ccl"

// Broadcast copies rank src's tensor to all ranks, which bring one of the same
// length and type. Length 0 is allowed. A src that is not in the group is refused
// with *InvalidRootError.
func Broadcast[T ccl.Element](tensor []T, src int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return c.rooted(src, ccl.Broadcast(c.ctx, c.comm, tensor, c.root(src), c.opts[:c.n]...))
}

// AllGather puts the inputs of all ranks into output on every rank: rank r's goes
// to output[r*len(input):]. len(input) is the same on all ranks and may be 0,
// len(output) as many times that as there are ranks. input may be exactly its own
// place in output and must otherwise be apart from it
// (torch.distributed.all_gather_into_tensor).
//
// Wrong lengths are refused with *InvalidBufferSizeError, which calls input send
// and output recv, and overlaps with *InvalidArgumentError.
func AllGather[T ccl.Element](output, input []T, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return ccl.AllGather(c.ctx, c.comm, input, output, c.opts[:c.n]...)
}

// AllGatherV is AllGather with inputs of unlike lengths, which lie in output one
// after the other in rank order: rank r brings counts[r] elements, which may be 0.
// len(input) is the caller's own count, len(output) at least the sum of all, and
// counts the same on all ranks.
//
// It has the errors of AllGather, and refuses negative counts with
// *InvalidArgumentError.
func AllGatherV[T ccl.Element](output, input []T, counts []int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return ccl.AllGatherV(c.ctx, c.comm, input, output, counts, nil, c.opts[:c.n]...)
}

// Gather is AllGather for rank dst alone. On the others output is nil; one with
// elements is refused with *InvalidBufferSizeError.
//
// It has the errors of AllGather; a dst that is not in the group is refused with
// *InvalidRootError.
func Gather[T ccl.Element](output, input []T, dst int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return c.rooted(dst, ccl.Gather(c.ctx, c.comm, input, output, c.root(dst), c.opts[:c.n]...))
}

// GatherV is Gather with inputs of unlike lengths, which only rank dst has to
// know: its counts say how many elements each rank brings, and its output has at
// least as many as all of them. On the others output and counts are nil.
//
// It has the errors of Gather. Where counts are not what ranks bring, all ranks
// get *MismatchError, and the group is unharmed.
func GatherV[T ccl.Element](output, input []T, counts []int, dst int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return c.rooted(dst, ccl.GatherV(c.ctx, c.comm, input, output, counts, nil, c.root(dst), c.opts[:c.n]...))
}

// Scatter deals the input of rank src out: rank r's output gets the elements from
// r*len(output) on. len(output) is the same on all ranks and may be 0, len(input)
// as many times that as there are ranks; on ranks other than src input is nil,
// and one with elements is refused with *InvalidBufferSizeError. src's output may
// be exactly its own block of input and must otherwise be apart from it.
//
// It has the errors of Gather.
func Scatter[T ccl.Element](output, input []T, src int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return c.rooted(src, ccl.Scatter(c.ctx, c.comm, input, output, c.root(src), c.opts[:c.n]...))
}

// ScatterV is Scatter with blocks of unlike lengths, which only rank src has to
// know: rank r's output gets the counts[r] elements of input that follow those of
// the ranks before it, and has that length. On ranks other than src input and
// counts are nil.
//
// It has the errors of GatherV.
func ScatterV[T ccl.Element](output, input []T, counts []int, src int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return c.rooted(src, ccl.ScatterV(c.ctx, c.comm, input, counts, nil, output, c.root(src), c.opts[:c.n]...))
}

// AllToAll gives every rank its block of every input: block r of rank s's input
// goes to block s of rank r's output. input and output are apart and have the same
// length on all ranks, which the number of ranks divides
// (torch.distributed.all_to_all_single).
//
// It has the errors of AllGather; a length that cannot be divided is refused with
// *InvalidArgumentError.
func AllToAll[T ccl.Element](output, input []T, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return ccl.AllToAll(c.ctx, c.comm, input, output, c.opts[:c.n]...)
}

// AllToAllV is AllToAll with blocks of unlike lengths: inputCounts[r] elements of
// input, after those for the ranks before r, go to rank r, and outputCounts[s]
// elements of output, after those of the ranks before s, come from rank s. Counts
// may be 0.
//
// It has the errors of AllToAll. Where what one rank sends is not what another
// expects, all ranks get *MismatchError, which names the first two, and the group
// is unharmed.
func AllToAllV[T ccl.Element](output, input []T, outputCounts, inputCounts []int, opts ...CallOption) error {
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	return ccl.AllToAllV(c.ctx, c.comm, input, inputCounts, nil, output, outputCounts, nil, c.opts[:c.n]...)
}
