// Package primitive has linear operators on tensors that live on many workers. Each has a Forward,
// which moves or sums parts of a tensor between workers, and an Adjoint, which carries gradients
// back. Layers made of them are distributed layers whose gradients are right.
//
// # Model
//
// A tensor that lives on a partition has a part, a [Tensor], on each active worker. An [Operator]
// maps the parts x of all workers to parts y. Its Adjoint satisfies, summed over all workers,
//
//	<F x, y> = <x, F* y>    for all x and y
//
// so if F moves activations forward, F* moves their gradients backward. primitivetest.Adjoint tests
// that.
//
//	operator         forward                                       adjoint
//	AllSumReduce     every worker gets the sum of its group        the same
//	Broadcast        copies from a partition to a larger one       sums back
//	SumReduce        sums from a partition to a smaller one        copies back
//	Repartition      moves a tensor to another partition           moves it back
//	HaloExchange     fills ghost cells from the neighbours         adds gradients to the neighbours
//	AllGather        every worker gets the parts of its group      sums, and keeps its own part
//	ReduceScatter    sums, and keeps its own part                  gathers the parts
//
// The first five are those of DistDL (Hewett and Grady, arXiv:2006.03108). The last two are those
// of tensor parallelism (Shoeybi et al., Megatron-LM, arXiv:1909.08053).
//
// Workers that have no part of the input pass nil, or a tensor without elements; those that have no
// part of the result get a tensor without elements. No worker needs to know the shapes of others:
// each call begins with a small exchange of them, in which all workers find the same mistakes.
// Forward and Adjoint take a tensor for the result, which may be nil; with one of the right shape a
// call allocates nothing.
//
// The last dimension of a tensor is the fastest. Where a dimension is divided among workers, it is
// divided as ccl.BlockRange does: the first get one element more. A Repartition makes it so: its
// input may be divided in any way.
//
// # Concurrency
//
// An operator belongs to one worker, which makes one call of it at a time. Making an operator and
// its calls are collective, over the workers that its constructor names; Close is not. Operators
// have communicators of their own, so calls of different operators are independent.
//
// # Failure
//
// A mistake in shapes is *ccl.InvalidArgumentError or *ccl.MismatchError on all workers that take
// part in the step where it was found, and the operator stays usable. Other errors are those of
// package ccl, after which an operator can only be closed. After an error the result is
// unspecified.
package primitive
