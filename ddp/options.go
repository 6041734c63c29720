package ddp

import "log/slog"

// Options are the choices of a Reducer; the zero value has torch's defaults, except that buffers are
// broadcast by New only. They are the same on all ranks.
type Options[T Float] struct {
	// BucketBytes is the size at which a bucket ends; 0: 25 MiB. FirstBucketBytes is that of the first, which
	// is small so that communication starts early; 0: 1 MiB. A gradient of the program's own that is reduced in place is a
	// bucket, whatever the sizes are.
	BucketBytes, FirstBucketBytes int

	// FindUnused lets parameters be not ready at Wait: they count as zeros, and those that were ready on no
	// rank keep their gradients (a gradient that New made is zero then). It costs one small all-reduce a step.
	FindUnused bool

	// StaticGraph says that all steps have the same parameters ready as the first, which is like one with
	// FindUnused. A parameter that is missing in a later step is an *UnreadyError on all ranks, one that is ready
	// beyond them an error of this rank's Wait.
	StaticGraph bool

	// Buffers are state besides parameters, such as running means. New copies rank 0's to all ranks, and with
	// BroadcastBuffers each Wait does.
	Buffers          [][]T
	BroadcastBuffers bool

	// Hook replaces the all-reduce of buckets; nil: their mean.
	Hook Hook[T]

	// Logger, if not nil, hears if buckets cannot lie in memory that ranks share.
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
