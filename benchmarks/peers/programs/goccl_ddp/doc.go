// Command goccl_ddp times what communication adds to a step of data parallel training on package
// ddp, with float32 gradients of given lengths, and prints a CSV row.
//
//	go build ./benchmarks/peers/programs/goccl_ddp
//	goccl run -n RANKS -- ./goccl_ddp RANKS FORM LIBRARY ENTRY BUDGET_MS MAX_STEPS NAME ELEMENTS...
//
// FORM is views, for gradients that are parts of buckets, or copies, for gradients of the program's
// own. LIBRARY, ENTRY and NAME are copied to the row. ELEMENTS are the lengths of the gradients,
// the first layer's first.
//
// # Model
//
// Backward writes each gradient, the last one first, and calls Ready for it. A round is a step in
// NoSync and a step with communication, each between barriers; its time is that of the second less
// that of the first, each of the slowest rank. All elements are verified outside the timed part.
// The number of rounds is what fits into the budget, by the fastest of a few that are not counted.
//
// The exit status is 1 if a rank fails, 2 for invalid arguments. Wrong results are counted in the
// row. An interrupt or SIGTERM ends the steps and the job, which leaves nothing behind.
package main
