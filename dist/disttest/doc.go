// Package disttest tests programs of package dist under many orders of what their ranks do:
//
//	func TestTraining(t *testing.T) { disttest.Seeds(t, 4, train) }
//
// # Model
//
// train is a worker of dist.Spawn, whose error fails the test. It starts goroutines by dist.Go, and
// waits by the calls of package dist alone, not on channels, locks or timers of its own.
//
// With go test -tags interleave, a seed chooses the order of all steps in which ranks meet. Time
// passes only when no rank can go on. Without the tag the same programs run in the order of the
// machine. With -race a seed also finds memory that ranks share and do not synchronise.
//
// The flags -goccl.seed and -goccl.count, after -args, select the seeds.
//
// # Concurrency
//
// Tests with the tag do not run in parallel.
//
// # Failure
//
// A test fails with the first seed whose ranks return an error, panic, wait for each other for
// ever, or leave goroutines, and prints the command that runs this seed again.
package disttest
