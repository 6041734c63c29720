// Package processes holds the tests of jobs whose ranks are processes, used as
// programs use them, through package dist: random programs of all calls, and ranks that
// are killed, stopped or late, or whose shared memory is truncated. It contains no code.
//
// # Model
//
// The test binary plays ranks as processes of its own: started with a variable of the
// environment, it does what that says instead of running tests. One rank says where it is;
// the test waits for it to come to some point, then for a random moment more, and does
// its harm. That moment is the experiment; nothing else here sleeps,
// but for ranks of random programs, which are late now and then.
//
// A short form of the tests runs with all others; make kill and make programs run the
// long ones.
//
// # Concurrency
//
// Jobs run one after the other: what is left behind in /dev/shm is theirs.
//
// # Failure
//
// Ranks that a test has started are killed at its end.
package processes
