// Command peers times all-reduce (float32, sum, in place) and barriers of goccl, on
// goroutines and on processes, and the same operations of Open MPI, MPICH and
// torch.distributed's gloo, on this machine and in turns, and shows their times as multiples
// of goccl's processes.
//
//	go run ./benchmarks/peers -ranks 2,4 -passes 5
//
// It builds goccl's program with the go command, so the working directory must be
// in the module. It installs nothing: it lists missing libraries and how
// to get them, and compares the installed ones. It prints tables, and writes
// peers.csv to the working directory.
//
// # Model
//
// A contestant is a library with one of its settings: "default" is unchanged, others have the
// settings that helped it most. goccl is unchanged, with "goroutines" and "processes" as ranks, and
// "alloc" for processes whose vectors come from ccl.Alloc. All follow the same rule. In each round
// every rank computes, if asked to, and rewrites its input, all ranks synchronise twice, so that
// none is late, and the operation is timed on every rank; all synchronise again, so that none
// rewrites while another is timed. The slowest rank determines the time of a round, and the results
// of all rounds are verified outside the timed part. A contestant makes as many rounds as fit into
// a budget, for one size after the other; then it is the next contestant's turn. All contestants
// run in several passes, so that disturbances of the machine affect them equally, and the table
// shows the medians over the passes.
//
// Ranks differ: the peers' are processes, which must carry data from one address space
// into another; goroutines of one process read each other's buffers. Peers are compared
// with goccl's processes; see README.md.
//
// With -workloads it compares what communication adds to a step of data parallel training, of
// package ddp and of torch's DistributedDataParallel, and writes peers-workloads.csv.
//
// # Concurrency
//
// One contestant runs at a time, in processes of its own.
//
// # Failure
//
// Each process has a deadline. A process that misses it is killed with all its
// descendants. A rank that fails ends the others, and a contestant that failed is
// named and left out of the rest. The exit status is 0 if all installed libraries
// were compared and all results were right, 1 if not, or if no peer is installed, and 2
// for invalid flags.
package main
