// Package disttest tests programs of package dist under many orders of what their ranks do:
//
//	func TestTraining(t *testing.T) { disttest.Seeds(t, 4, train) }
//
// # Model
//
// train is a worker of dist.Spawn, whose error fails the test. Goroutines that call goccl are
// started by dist.Go, not by a go statement, and no lock of package sync is held across a call. The
// program may wait on channels, groups, contexts and sleeps of its own, but no seed orders what it
// does there, and it must make its channels in train.
//
// With go test -tags interleave, a seed chooses the order of all steps in which ranks meet. Time
// passes only when no rank can go on. Without the tag the same programs run in the order of the
// machine. With -race a seed also finds memory that ranks share and do not synchronise.
//
// The flags -goccl.seed and -goccl.count, after -args, select the seeds.
//
// # Concurrency
//
// With the tag these tests run one at a time, and no other test that calls goccl may be parallel to
// them.
//
// # Failure
//
// A test fails with the first seed whose ranks return an error, panic, wait for each other for
// ever, or leave goroutines, or in which the race detector finds a race. It prints where the ranks
// are in the program, and the command that runs this seed again. Then it runs the seed once more,
// and shows the lines of the program in the order in which the ranks, as columns, reached them.
package disttest
