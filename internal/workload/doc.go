// Package workload has the parameters of published networks, and how the operations of a step are
// distributed over their layers, for benchmarks of data parallel training.
//
// # Model
//
// A Workload is a list of layers in the order of the forward pass. Backward goes through them in
// reverse: it takes time in proportion to the operations of a layer, and then the gradients of its
// parameters are final. Parameters have the names and shapes of torchvision and Hugging Face's
// transformers. Operations are the multiply-adds of the forward pass for one sample; those of
// normalisations, activations and sums are left out, which are below one percent.
//
// # Concurrency
//
// All values are plain data.
//
// # Failure
//
// Named returns an error for an unknown name.
package workload
