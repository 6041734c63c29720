package ddp

import "log/slog"

// Options are the choices of a Reducer; the zero value has torch's defaults, except that buffers are
// broadcast by New only. They are the same on all ranks.
type Options[T Float] struct {
	// BucketBytes is the size at which a bucket ends; 0: 25 MiB. FirstBucketBytes is that of the first, which
	// is small so that communication starts early; 0: 1 MiB. A gradient of the program's own that is reduced in place is a
	// bucket, whatever the sizes are.
	BucketBytes, FirstBucketBytes int

	// FindUnused allows Wait while some parameters are not ready. Their gradients count as zeros. A parameter that was
	// ready on no rank keeps its gradient (one that New made is zero then). It costs one small all-reduce a step.
	FindUnused bool

	// StaticGraph promises that the same parameters are ready in every step. The first step is like
	// one with FindUnused and finds out which. If one of them is not ready in a later step, Wait fails
	// on all ranks, as without this option. If another one is ready, also within NoSync, this rank's
	// Wait fails. In that step a program does not write to its gradient if New made it, since that is
	// being reduced.
	StaticGraph bool

	// Buffers are state besides parameters, such as running means and, with Join, an optimizer's
	// momentum, in memory of their own: see Parameter. New copies rank 0's to all ranks, Join those of
	// a rank that trained longest, and with BroadcastBuffers each Wait rank 0's.
	Buffers          [][]T
	BroadcastBuffers bool

	// Hook replaces the all-reduce of buckets; nil: their mean.
	Hook Hook[T]

	// Logger, if not nil, gets a warning if buckets cannot lie in memory that ranks share.
	Logger *slog.Logger
}

func (o *Options[T]) setDefaults() {
	if o.BucketBytes == 0 {
		o.BucketBytes = 25 << 20
	}
	if o.FirstBucketBytes == 0 {
		o.FirstBucketBytes = 1 << 20
	}
}
