// Command peers times all-reduce (float32, sum, in place) and barriers of goccl, whose
// ranks are goroutines or processes, beside those of Open MPI, MPICH and
// torch.distributed's gloo, on this machine and in turns, and shows how many times as
// long they take as goccl's processes.
//
//	go run ./benchmarks/peers -ranks 2,4 -passes 5
//
// It builds goccl's program with the go command, which takes a working directory
// within the module. It installs nothing: it says which libraries are missing and how
// to get them, and compares with those that are there. It prints a table, and writes
// peers.csv and peers.png into the working directory.
//
// # Model
//
// A contestant is a library with one of its settings: "default" is as it comes,
// "tuned" is with the settings that have helped it most. goccl comes as it is, with
// "goroutines" and with "processes" for ranks. Everybody follows the same rule. In
// each round every rank rewrites its input, all meet, twice, so that none is still on
// its way, and the operation is timed on every rank; all meet again, so that none
// rewrites while another is timed. A round counts as long as its slowest rank took,
// and the results of all rounds are verified outside the timed part. A contestant
// makes as many rounds as fit into a budget, for one size after the other; then it is
// the next contestant's turn. Several passes over all contestants follow each other,
// so that whatever the machine does disturbs all alike, and the medians over the
// passes are what is shown.
//
// Ranks are not the same thing everywhere: processes, which the peers' are, have to
// carry data from one address space into another, and goroutines of one process read
// each other's buffers. Peers are compared with goccl's processes. README.md says what
// follows.
//
// # Concurrency
//
// One contestant runs at a time, in processes of its own.
//
// # Failure
//
// Each process gets a deadline. One that misses it is killed with all that it
// started. A rank that fails takes the others with it, and a contestant that failed is
// named and left out of the rest. The exit status is 0 if everything that is installed
// was compared and all results were right, 1 if not, or if no peer is installed, and 2
// for flags that make no sense.
package main
