// Command paired compares the speed of two revisions of goccl on this machine: the working
// tree, and a revision that -base names.
//
//	go run ./benchmarks/paired -base HEAD~10
//
// It builds goccl of both, runs `goccl bench` of each in turns, and prints one line per case:
// the median over the passes of the ratio of the two times of a pass, and its spread. Arguments
// after the flags replace the default cases; they are those of `goccl bench`:
//
//	go run ./benchmarks/paired -base HEAD~10 all_gather --ranks 2,4 --transport shm
//
// # Model
//
// The runs of a pass follow each other, so a disturbance that lasts longer than a pass affects
// both, and the ratio of a pass is that of one state of the machine. Every other pass begins
// with the other build. A yardstick is the same code in both builds: the spread of its ratio
// shows how much the machine alone changes.
//
// # Concurrency
//
// One benchmark runs at a time.
//
// # Failure
//
// A revision that does not build, or a benchmark that fails, ends the command with its output.
// Nothing remains: the base is a temporary worktree of the repository.
package main
