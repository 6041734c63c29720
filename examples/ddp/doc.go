// Command ddp is data-parallel training in Go, whole: a multilayer perceptron
// learns to read handwritten digits on several ranks, whose gradients are
// averaged by dist.AllReduce. It trains on one rank first, then on all, and
// compares the two runs. train.go is the part to read and to copy.
//
//	go run github.com/goccl/goccl/examples/ddp -ranks 4
//
// The same program under a launcher trains on processes: once, on as many as there
// are, and the weights come out the same bit by bit.
//
//	goccl run -n 4 ddp
//
// # Model
//
// Every rank holds the same model and trains it on its own shard of the data.
// In each step a rank computes the gradient of its part of the batch; the
// average over the ranks is the gradient of the whole batch, because all parts
// are equally large (see sampler). All ranks then take the same step, so their
// weights stay equal bit by bit, which they prove at the end. One rank and many
// learn the same, up to the rounding of sums taken in another order and to the
// samples that padding repeats; the same command learns the same bits again.
//
// # Concurrency
//
// Each rank is a goroutine started by dist.Spawn, or a process started by a
// launcher, with a model of its own. Goroutines share the data sets and only read
// them. Nothing else is shared, and nothing is exchanged but by collectives.
//
// # Failure
//
// A rank that fails returns its error; dist makes the collectives of the other
// ranks fail too, and Spawn reports all of them, the cause first. The exit
// status is 0 after a training, 1 if it failed, 2 for flags that make no sense.
package main
