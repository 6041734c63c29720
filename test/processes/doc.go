// Package processes tests jobs whose ranks are processes, through package dist as programs use
// it: random programs of all calls, and ranks that are killed, stopped or late, or whose
// shared memory is truncated. It contains no code.
//
// # Model
//
// The test binary also runs as a rank: an environment variable selects what it does instead of
// running tests. A rank reports its progress; the test waits until it reaches some point, then
// for a random time, and kills or stops it. That random time is the experiment. Nothing else
// sleeps, except delayed ranks of random programs.
//
// It also runs as a program whose ranks goccl run, mpirun or a test with torchrun's variables
// starts, and of which one fails; then what they say of it is the experiment.
//
// A short form of the tests runs with all others; make kill and make programs run the long
// ones. Jobs run one after the other, so that a test can check what its job leaves in /dev/shm.
// A test kills the ranks that it has started at its end.
package processes
