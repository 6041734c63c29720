// Command goccl_allreduce times dist.AllReduce (float32, sum, in place) and
// dist.Barrier, and prints a CSV row for each size.
//
//	go build ./benchmarks/peers/programs/goccl_allreduce
//	./goccl_allreduce RANKS MEMORY LIBRARY ENTRY BUDGET_MS MAX_CALLS COMPUTE_US BYTES...
//	goccl run -n RANKS -- ./goccl_allreduce RANKS MEMORY ...
//
// MEMORY is private, for vectors that each rank makes, or alloc, for vectors from
// ccl.Alloc; or sockets, the yardstick, which moves as many bytes as the all-reduce by plain
// connections, and reduces nothing. LIBRARY and ENTRY are copied to the rows. COMPUTE_US is how
// long a rank computes before each call, in microseconds. 0 bytes is a barrier.
//
// # Model
//
// Started once, its ranks are goroutines; started RANKS times by a launcher, they are
// processes. It uses the built-in configuration, whatever the working directory contains.
//
// The timing rule is the one of command peers. The number of rounds is what fits into the
// budget, by the fastest of a few that are not counted.
//
// # Failure
//
// The exit status is 1 if a rank fails, 2 for invalid arguments. Wrong
// results are counted in the rows. An interrupt or SIGTERM ends the calls and the job,
// which leaves nothing behind.
package main
