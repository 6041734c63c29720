// Command ddp is a complete data-parallel training in Go: a multilayer perceptron
// learns to read handwritten digits on several ranks, which average their gradients with
// package ddp while they compute. It trains on one rank first, then on all, and
// compares the two runs. train.go is the part to read and to copy.
//
//	go run github.com/goccl/goccl/examples/ddp -ranks 4
//
// Under a launcher the same program trains on processes: once, on all of them, with
// the same weights bit by bit.
//
//	goccl run -n 4 ddp
//
// # Model
//
// Every rank holds the same model and trains it on its own shard of the data.
// In each step a rank computes the gradient of its part of the batch; the
// average over the ranks is the gradient of the whole batch, because all parts
// are equally large (see ddp.Sampler). All ranks then take the same step, so their
// weights stay equal bit by bit, which they verify at the end. One rank and many
// learn the same, except for the rounding of sums in another order and for the
// samples that padding repeats. The same command learns the same bits again.
//
// # Concurrency
//
// Each rank is a goroutine started by dist.Spawn, or a process started by a
// launcher, with its own model. Goroutines share the data sets, which are read-only.
// Everything else is exchanged by collectives.
//
// # Failure
//
// A rank that fails returns its error; dist makes the collectives of the other
// ranks fail too, and Spawn returns all errors, the cause first. The exit
// status is 0 after a training, 1 if it failed, 2 for invalid flags.
package main
