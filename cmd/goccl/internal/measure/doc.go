// Package measure times collectives beside yardsticks, for `goccl bench`.
//
// # Model
//
// A Plan is a matrix of Cases; a Case is a call that is measured: collective, type,
// operation, length, ranks. Job.Measure hosts the ranks of one case as a program
// would, with dist.Spawn and dist.InitProcessGroup, and lets contenders take turns:
// each algorithm that was asked for, and the yardsticks, which are
//
//   - own copy: every rank copies its own input, as much of it as it brings or gets,
//     whichever is longer, and then all meet in a barrier; where it gets all inputs, its
//     own as many times;
//   - peer copy: the same, but of what the next rank has just written (where a rank gets
//     all inputs: of what each has written, to where it belongs);
//   - floor: the memory traffic of the collective, by copies of a rank's own input. Mostly
//     that is the own copy. A reduce or a reduce-scatter reads the whole input and stores
//     one R-th of it, and in a gather or a scatter each rank moves one block;
//   - barrier: all ranks meet;
//   - core to core: ranks 0 and 1 pass a word back and forth, and one way is half
//     of a round trip.
//
// A turn is a batch of calls of one contender, as many as take about a
// millisecond; then it is another's, in an order that is shuffled for every round
// of all. So whatever the machine does disturbs all alike.
//
// Around each call, outside of what is timed, every rank writes its input anew,
// with values that differ from call to call; all meet, twice, so that none is still
// waking up when the clocks start; and all meet again before the results are
// compared with what they have to be, element by element. A call takes as long as
// it took the slowest rank, by a clock that each rank reads just before and just
// after.
//
// Results are medians, 99th percentiles and minima in microseconds, and bandwidths
// in GB/s (1e9 bytes) by the definitions of NVIDIA's nccl-tests; see Bandwidth.
//
// # Concurrency
//
// One Job.Measure at a time: the yardsticks, and the way in which ranks wait, assume
// that nothing else runs in the process. Values are plain data.
//
// # Failure
//
// Measure returns what dist returns: a mistake in the configuration, or the failure
// of a call. A wrong result is no error of Measure; it is counted in its Row. If the
// context ends, Measure stops between two turns with the context's error.
package measure
