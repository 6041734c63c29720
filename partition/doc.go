// Package partition arranges workers for tensors that live on many of them: teams of workers, teams
// with a Cartesian shape, and the groups that move data between two of them.
//
// # Model
//
// A worker is a rank of the communicator that [New] takes. A [Partition] is an ordered team of
// workers. Each worker of a job has its own value of it: it is active if it is in the team, and
// inactive otherwise. An inactive worker does not know who is in the team. A partition has a shape,
// whose product is its size; workers are numbered row by row (row-major, the last dimension
// fastest):
//
//	shape 2 x 3    rank = i*3 + j
//
//	          j=0  j=1  j=2
//	    i=0    0    1    2
//	    i=1    3    4    5
//
// [New] and [Partition.Inclusive] make partitions of one dimension; [Partition.Cartesian] gives the
// same workers a shape.
//
// A tensor that lives on a partition has one part on each active worker. Data moves between
// partitions in groups, which are partitions themselves:
//
//   - [Partition.AllReduction]: the workers that differ only in some dimensions.
//   - [Partition.BroadcastTo]: each worker of the source, and the workers of the destination that
//     get its data. The destination's shape is the source's, with some extents of 1 stretched and
//     more dimensions on the left: the rules of NumPy's broadcasting, in one direction.
//   - [Partition.ReductionTo]: the same in reverse.
//
// The source or destination is rank 0 of its group, and the others follow in the order of the union
// of both partitions. A worker is in up to two groups, which may be the same.
//
// The rules are those of DistDL (Hewett and Grady, A Linear Algebraic Approach to Model Parallelism
// in Deep Learning, arXiv:2006.03108). Package primitive has the operators that move tensors.
//
// # Concurrency
//
// A Partition belongs to one worker, which makes one call on it at a time. Methods without a
// context do not communicate and may be called from any goroutine. The others are collective: all
// active workers of the partition call them, with the same arguments; those with two partitions are
// called by all workers of the closest partition that both were made of, their common ancestor.
// Groups are made in the same order on all workers, so overlapping groups cannot deadlock.
//
// # Failure
//
// Errors of communication are those of package ccl. [ErrInactive] is the error of a call that needs
// an active worker. *ccl.InvalidArgumentError is a mistake in the arguments; where all workers see
// it, all get it, and the partition stays usable, as after *agree.RejectedError, which is an error
// of some worker that all get. Workers that disagree on arguments get *ccl.MismatchError.
package partition
