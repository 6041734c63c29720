// Package ddp trains one model on many ranks: each rank computes the gradients of its part of a
// batch, and all continue with their mean (DistributedDataParallel of torch).
//
// # Model
//
// A framework has its parameters and gradients in slices. New takes them, gives all ranks the
// parameters of rank 0, and divides the gradients into buckets. In each step the program computes
// gradients, calls Ready for each parameter whose gradient is final, and then Wait:
//
//	group, err := dist.Default() // all ranks
//	model, err := ddp.New(ctx, group, []ddp.Parameter{
//		ddp.Param("weight", weight, weightGrad), // of half.BFloat16
//		ddp.Param("norm", norm, normGrad),       // of float32
//	}, ddp.Options{})
//	for batch := range batches {
//		loss := net.Forward(batch)
//		net.Backward(loss, model.Ready) // calls Ready(i) when the gradient of parameter i is final
//		if err := model.Wait(ctx); err != nil {
//			return err
//		}
//		optimizer.Step()
//	}
//
// The all-reduce of a bucket starts when all of its gradients are ready and runs while backward
// goes on. After Wait the gradients are the mean over all ranks, equal bit by bit on all of them;
// an optimizer that depends on nothing else keeps the parameters equal.
//
// The parameters of a model may have different types. The gradients of a bucket have one.
//
// Gradients have two forms. If Param gets none for all parameters, New makes the gradients, as
// parts of buckets, and nothing is copied: see Grad. If it gets one for all, Ready copies a
// gradient into a bucket and Wait copies the mean back; from 256 KiB on it is reduced in place, as
// a bucket by itself, unless its type has a hook or parameters may be unused.
//
// With Options.LogicalShards the bits of a training do not depend on the number of ranks: see
// Shards. With Options.Shard ranks divide the work and the state of the optimizer: see Step. Ranks
// that communicate seldom train without Ready and Wait, and call AverageParameters or an Outer.
//
// # Concurrency
//
// Ready may be called by many goroutines at a time; the other methods by one at a time. A Reducer
// makes its calls on a group of its own, so that the program may make calls on its groups
// meanwhile.
//
// # Failure
//
// What differs between ranks when a Reducer is made is a *ccl.MismatchError on all of them. In a
// step, Wait returns the error of the collective that failed, with the names of the parameters in
// the bucket: a rank that was lost (*dist.PeerLostError), a timeout, or a gradient that was not
// ready. That is *UnreadyError on the rank itself. The others get its text, in *ccl.MismatchError,
// or in *dist.AbortedError if the rank's worker has returned the error by then.
package ddp
