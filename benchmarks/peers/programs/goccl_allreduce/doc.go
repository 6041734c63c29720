// Command goccl_allreduce times dist.AllReduce (float32, sum, in place) and
// dist.Barrier, and prints a CSV row for each size.
//
//	go build ./benchmarks/peers/programs/goccl_allreduce
//	./goccl_allreduce RANKS LIBRARY ENTRY BUDGET_MS MAX_CALLS BYTES...
//	goccl run -n RANKS -- ./goccl_allreduce RANKS LIBRARY ENTRY BUDGET_MS MAX_CALLS BYTES...
//
// LIBRARY and ENTRY stand in the rows as they are given. 0 bytes is a barrier.
//
// # Model
//
// Started alone its ranks are goroutines; started RANKS times by a launcher, they are
// processes. The configuration is the one that is
// built in, whatever lies in the working directory.
//
// The timing rule: in each round every rank rewrites its input, all meet, twice, so
// that none is still on its way, and the operation is timed on every rank; all meet
// again, so that none rewrites while another is timed. A round counts as long as its
// slowest rank took. The results of all rounds are verified, outside the timed part.
// The number of rounds is what fits into the budget, by the fastest of a few that
// are not counted.
//
// # Concurrency
//
// Each rank does its calls one after the other.
//
// # Failure
//
// The exit status is 1 if a rank fails, 2 if the arguments make no sense. Wrong
// results are counted in the rows. An interrupt or SIGTERM ends the calls, and with
// them the job, which leaves nothing behind.
package main
