// Package measure times collectives beside yardsticks, for `goccl bench`.
//
// # Model
//
// A Plan is a matrix of Cases; a Case is a call to measure: collective, type, operation, length,
// ranks. Setup.Measure hosts the ranks of a case as a program would, with dist.Spawn and
// dist.InitProcessGroup. In a process that a launcher started, Setup.MeasureAsRank is one of them;
// LaunchedRanks decides on rank 0 what all measure. Subjects take turns: the requested algorithms
// and the yardsticks, which are
//
//   - own copy: every rank copies its own input, or that many bytes if its result is longer, and
//     then all ranks synchronise in a barrier; if it gets all inputs, it copies its own as many
//     times;
//   - peer copy: the same with data that the next rank has just written (if a rank gets all inputs:
//     the data of each rank, to its block of the result);
//   - floor: the memory traffic of the collective, as copies of a rank's own input, mostly the own
//     copy. A reduce or a reduce-scatter reads the whole input and stores one R-th of it, and in a
//     gather or a scatter each rank moves one block;
//   - barrier: all ranks synchronise;
//   - core to core: ranks 0 and 1 pass a word back and forth; the result is half of a round trip.
//
// Over a transport whose ranks share no memory, peer copy and core to core are left out.
//
// A case can also be a workload: steps of training a network on package ddp, with backward passes
// that compute or wait. Its floor is one all-reduce of all gradients, and the yardstick backward is
// a step without communication. A turn is one step.
//
// A turn is a batch of calls of one subject that takes about a millisecond. Each round has one turn
// of every subject, in random order, so that disturbances of the machine affect all equally.
//
// Around each call, outside of the measured time, every rank rewrites its input with values that
// differ from call to call; all ranks synchronise twice, so that none is still waking up when the
// clocks start; and all synchronise again before every element of the results is compared with its
// expected value. If the case has a time to compute, every rank computes instead, and nothing but
// the calls synchronises the ranks. A step is what is between two rewritings: one call, or one in
// each of the case's buckets.
//
// The time of a call begins when its last rank begins it and ends when its last rank has returned,
// by a clock that each rank reads just before and just after. The whole call is that of the rank
// that was in it longest. Results are medians, percentiles and minima in microseconds, and
// bandwidths in GB/s (1e9 bytes) by the definitions of NVIDIA's nccl-tests; see Case.Bandwidth.
//
// # Concurrency
//
// One case at a time: the yardsticks, and the way in which ranks wait, assume that nothing else
// runs in the process. Values are plain data.
//
// # Failure
//
// Measure returns the errors of dist: a mistake in the configuration, or a failed call. A wrong
// result is not an error; it is counted in its Row. If the context ends, Measure stops between two
// turns with the context's error. If a rank of a launcher's job fails, the errors of dist name it.
package measure
