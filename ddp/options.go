package ddp

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"

	"github.com/goccl/goccl/ccl/agree"
)

// Options are the choices of a Reducer; the zero value has torch's defaults, except that buffers
// are broadcast by New only. They are the same on all ranks.
type Options struct {
	// Name is that of the Reducer in errors, logs and the flight recorder; "": "ddp".
	Name string

	// BucketBytes is the size at which a bucket ends; 0: 25 MiB. FirstBucketBytes is that of the
	// first, which is small so that communication starts early; 0: 1 MiB.
	//
	// The gradients of a bucket have one type. One of the program's own that is reduced in place is a
	// bucket, whatever the sizes are.
	BucketBytes, FirstBucketBytes int

	// FindUnused allows Wait while some parameters are not ready. Their gradients count as zeros. A
	// parameter that was ready on no rank keeps its gradient (one that New made is zero then).
	//
	// It costs one small all-reduce a step.
	FindUnused bool

	// StaticGraph promises that the same parameters are ready in every step. The first step is like
	// one with FindUnused and finds out which.
	//
	// If one of them is not ready in a later step, Wait fails on all ranks, as without this option.
	// If another one is ready, also within NoSync, this rank's Wait fails. In that step a program
	// does not write to its gradient if New made it, since that is being reduced.
	StaticGraph bool

	// Buffers are state besides parameters, such as running means and, with Join, an optimizer's
	// momentum. New copies rank 0's to all ranks, Join those of a rank that trained longest, and with
	// BroadcastBuffers each Wait rank 0's.
	Buffers          []Tensor
	BroadcastBuffers bool

	// Shard divides the work and the state of the optimizer among ranks: each updates 1/R of the
	// parameters (ZeRO stage 1; torch's ZeroRedundancyOptimizer). See Step.
	//
	// Wait reduces each gradient to the rank that needs it, in half the time of an all-reduce: only
	// this rank's parts of the gradients are the mean then, and the rest is undefined. Step sends as
	// much again. Join is refused, but JoinOptions.Disable.
	//
	// Buckets are in the reverse order of the parameters and stay so.
	Shard bool

	// LogicalShards is the number of shards into which the program cuts the batch of a step, the
	// Sampler's too; 0: there are none. Gradients become the mean over all shards, with bits that do
	// not depend on the number of ranks, which is at most as large. Buffers of floats move by the mean
	// of what shards change, and become the mean where they were not finite; all shards begin with the
	// same, and the others, such as counters, become those of the first shard. See Shards.
	//
	// A rank hosts consecutive shards, and computes one after the other. It keeps the sums of up to
	// log2 of their number. Where a rank's shards are no whole subtree of the binary tree over all, it
	// sends up to 2 log2 sums: best is a number of ranks of which LogicalShards is a multiple by a
	// power of two.
	//
	// It needs the entry pairwise in ccl.yaml. Hooks, Shard, FindUnused, StaticGraph and
	// BroadcastBuffers are refused, and NoSync, Join, AverageParameters and NewOuter.
	LogicalShards int

	// Hooks replace the all-reduce of buckets; without them buckets get their mean. A type of the
	// parameters has one of those that are set.
	Hooks Hooks

	// KeepCheckpoints is how many checkpoints remain in a directory after Save and SaveAsync; 0: all.
	// They remove the oldest of those whose names differ from the new one's in numbers alone, such as
	// step-200.safetensors beside step-300.safetensors.
	KeepCheckpoints int

	// Logger, if not nil, gets a warning if buckets cannot lie in memory that ranks share, and if
	// LoadLatest passes over a file.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	o.Name = cmp.Or(o.Name, "ddp")
	o.BucketBytes = cmp.Or(o.BucketBytes, 25<<20)
	o.FirstBucketBytes = cmp.Or(o.FirstBucketBytes, 1<<20)
}

// shared returns what all ranks have in common, beside buffers.
func (o *Options) shared() (facts []agree.Fact) {
	var hooks []string
	for _, t := range floats {
		if hook := o.Hooks.of(t); hook != nil {
			hooks = append(hooks, fmt.Sprintf("%T of %v", hook, t))
		}
	}

	add := func(name string, value any) {
		facts = append(facts, agree.Fact{Name: "Options." + name, Value: fmt.Sprint(value)})
	}
	add("Name", fmt.Sprintf("%q", o.Name))
	add("BucketBytes", o.BucketBytes)
	add("FirstBucketBytes", o.FirstBucketBytes)
	add("FindUnused", o.FindUnused)
	add("StaticGraph", o.StaticGraph)

	add("BroadcastBuffers", o.BroadcastBuffers)
	add("Shard", o.Shard)
	add("LogicalShards", o.LogicalShards)
	add("KeepCheckpoints", o.KeepCheckpoints)
	add("Hooks", cmp.Or(strings.Join(hooks, ", "), "none"))
	return facts
}
