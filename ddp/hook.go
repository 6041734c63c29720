package ddp

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/half"
)

// Hooks replace the all-reduce of the buckets of a type. Without one, a bucket gets the mean.
//
// A hook for several types is a generic type, with a field here for each of them:
//
//	type negate[T ddp.Float] struct{} // has the methods of Hook[T]
//
//	hooks := ddp.Hooks{Float32: negate[float32]{}, BFloat16: negate[half.BFloat16]{}}
//
// A step with hooks has a barrier after its buckets, in which ranks learn that Finish has succeeded
// on all of them.
type Hooks struct {
	Float32  Hook[float32]
	Float64  Hook[float64]
	Float16  Hook[half.Float16]
	BFloat16 Hook[half.BFloat16]
}

// floats are the types that Hooks has, in the order of its fields.
var floats = []ccl.DType{ccl.Float32, ccl.Float64, ccl.Float16, ccl.BFloat16}

// of returns the hook of a type, or nil.
func (h *Hooks) of(d ccl.DType) any {
	switch d {
	case ccl.Float32:
		return h.Float32
	case ccl.Float64:
		return h.Float64
	case ccl.Float16:
		return h.Float16
	default:
		return h.BFloat16
	}
}

// isSet reports whether a type has a hook.
func (h *Hooks) isSet() bool { return *h != Hooks{} }

// Hook reduces buckets of a type. All ranks have the same. Its methods are called by one goroutine
// at a time, and must not call the Reducer. After the first step buckets are made anew, in another
// order and without State, unless gradients lie in buckets or FindUnused is set.
type Hook[T Float] interface {
	// Start starts the reduction of a bucket, on b.Comm, by b.Op, and does not wait. It is called
	// for all buckets in their order. The Work is not nil, and has been started for this bucket: one
	// that another group makes is waited for, also when the step has failed.
	//
	// If it is nil, or if Start or Finish panics, the step fails on all ranks, also where the program
	// recovers.
	Start(b *Bucket[T]) *ccl.Work

	// Finish is called when that Work has ended without an error. It leaves the result in
	// b.Gradients, which may be another slice then, of the same length. An error fails the step on
	// all ranks: Wait returns it on this one, and *dist.AbortedError with its text on the others. Its
	// calls have b.Context, so that Wait ends with it.
	Finish(b *Bucket[T]) error
}

// asyncCall is the call of a bucket, which each step starts again.
type asyncCall struct {
	work ccl.Work
	opts []ccl.CallOption // with the Work
}

// options returns the options of the call with which a bucket does something.
func (c *asyncCall) options(what string, bucket int) []ccl.CallOption {
	if c.opts == nil {
		label := fmt.Sprint(what, " ", bucket)
		c.opts = []ccl.CallOption{ccl.WithLabel(label), ccl.WithKey("ddp " + label), ccl.WithWork(&c.work)}
	}
	return c.opts
}

// startAllReduce starts the call of a bucket: an all-reduce in place of its gradients, in a type.
func startAllReduce[T, G Float](b *Bucket[T], call *asyncCall, gradients []G, op ccl.Op) *ccl.Work {
	_ = ccl.AllReduce(context.Background(), b.Comm, gradients, gradients, op, call.options("bucket", b.Index)...) // the Work has the error as well
	return &call.work
}

// mean is the hook of a type without one.
type mean[T Float] struct{}

// meanCalls is the state of its buckets.
type meanCalls struct {
	asyncCall
	sums []float32 // of float16 gradients, within Join
}

func (mean[T]) Start(b *Bucket[T]) *ccl.Work {
	calls, ok := b.State.(*meanCalls)
	if !ok {
		calls = new(meanCalls)
		b.State = calls
	}
	halves, ok := any(b.Gradients).([]half.Float16)
	if !ok || b.Op != ccl.Sum {
		return startAllReduce(b, &calls.asyncCall, b.Gradients, b.Op)
	}

	// Within Join the sum may be too large for a float16 where the mean, which Reducer makes of
	// sums, is not.
	if calls.sums == nil {
		calls.sums = make([]float32, len(halves))
	}
	for i, x := range halves {
		calls.sums[i] = x.Float32()
	}
	return startAllReduce(b, &calls.asyncCall, calls.sums, b.Op)
}

func (mean[T]) Finish(*Bucket[T]) error { return nil }

// Float16 returns the hook that reduces gradients as float16, half the bytes (fp16_compress_hook of
// torch).
//
// Gradients are divided by the number of ranks before they are sent. The mean has the precision of
// float16. Within Join gradients are rounded to float16 and sent as float32, because their sum may
// be too large for float16.
func Float16() Hook[float32] {
	return compressed[half.Float16]{half.NewFloat16, half.Float16.Float32, true}
}

// BFloat16 returns the hook that reduces gradients as bfloat16, half the bytes (bf16_compress_hook
// of torch). The mean has the precision of bfloat16, 8 bits.
func BFloat16() Hook[float32] {
	return compressed[half.BFloat16]{half.NewBFloat16, half.BFloat16.Float32, false}
}

// compressed reduces buckets in a shorter type.
type compressed[H half.Float16 | half.BFloat16] struct {
	round         func(float32) H
	value         func(H) float32
	sumsAsFloat32 bool // within Join
}

// shortened is the state of a bucket.
type shortened[H half.Float16 | half.BFloat16] struct {
	asyncCall
	gradients []H
}

func (h compressed[H]) Start(b *Bucket[float32]) *ccl.Work {
	s, ok := b.State.(*shortened[H])
	if !ok {
		s = &shortened[H]{gradients: make([]H, len(b.Gradients))}
		b.State = s
	}
	share := float32(1)
	if b.Op == ccl.Avg {
		share = 1 / float32(b.Comm.Size())
	}
	for i, x := range b.Gradients {
		s.gradients[i] = h.round(x * share)
	}

	if h.isWide(b) {
		h.copyBack(b)
		return startAllReduce(b, &s.asyncCall, b.Gradients, ccl.Sum)
	}
	return startAllReduce(b, &s.asyncCall, s.gradients, ccl.Sum)
}

func (h compressed[H]) Finish(b *Bucket[float32]) error {
	if !h.isWide(b) {
		h.copyBack(b)
	}
	return nil
}

// isWide reports whether the call of a bucket reduces float32.
func (h compressed[H]) isWide(b *Bucket[float32]) bool { return h.sumsAsFloat32 && b.Op == ccl.Sum }

// copyBack copies the shortened gradients of a bucket to its gradients.
func (h compressed[H]) copyBack(b *Bucket[float32]) {
	for i, x := range b.State.(*shortened[H]).gradients {
		b.Gradients[i] = h.value(x)
	}
}
