package ccltest

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// attempt is one rank's part of a job: its buffers, the call, and what has to be
// true of them afterwards.
type attempt interface {
	call(ctx context.Context, opts ...ccl.CallOption) error
	right() error     // the output holds the result
	fences() error    // nothing else was written
	bits() []uint64   // of the output, zeros but -0 and NaNs made equal
	renew(j *job)     // another job of the same kind, in the same memory
	spoil()           // overwrite everything, now that nobody else looks
	untouched() error // nobody has written since spoil
}

func (r *rank) attempt(j *job) attempt {
	switch j.dtype {
	case ccl.Uint8:
		return newAttempt[uint8](r, j)
	case ccl.Int32:
		return newAttempt[int32](r, j)
	case ccl.Int64:
		return newAttempt[int64](r, j)
	case ccl.Float32:
		return newAttempt[float32](r, j)
	}
	return newAttempt[float64](r, j)
}

// typed implements attempt.
type typed[T number] struct {
	rank    *rank
	job     *job
	in, out []T // what the call gets; the same in place and in a broadcast
	displs  []int
	memory  [][]T // the allocations that in and out lie in
	before  [][]T // what they held
}

// A fence is as long as the widest vector registers, twice.
const fence = 128

// buffer returns n elements with fences around them, shift elements off.
func (a *typed[T]) buffer(n, shift int) []T {
	elements := fence / ccl.DTypeOf[T]().Size()
	lo := elements + shift
	memory := make([]T, lo+n+elements)
	a.memory = append(a.memory, memory)
	return memory[lo : lo+n]
}

func newAttempt[T number](r *rank, j *job) *typed[T] {
	a := &typed[T]{rank: r, job: j}
	length := j.count
	if j.coll == ccl.CollAllGather {
		a.displs, length = j.displs(r.me)
	}
	a.out = a.buffer(length, j.shift)
	switch {
	case j.coll == ccl.CollBroadcast:
		a.in = a.out[:j.input(r.me)]
	case j.placing.inPlace(r.me) && j.coll == ccl.CollAllGather:
		at := a.start(r.me)
		a.in = a.out[at : at+j.counts[r.me]]
	case j.placing.inPlace(r.me):
		a.in = a.out
	default:
		a.in = a.buffer(j.input(r.me), j.shift*2)
	}
	a.fill()
	return a
}

// fill writes the inputs of the job, and to the rest of the memory what is neither
// zero nor left over from a job before.
func (a *typed[T]) fill() {
	for _, m := range a.memory {
		for i := range m {
			m[i] = T(90 + i%7)
		}
	}
	for i := range a.in {
		a.in[i] = value[T](a.job, a.rank.me, i)
	}
	a.before = a.before[:0]
	for _, m := range a.memory {
		a.before = append(a.before, slices.Clone(m))
	}
}

func (a *typed[T]) renew(j *job) {
	a.job = j
	a.fill()
}

// start returns where rank's input goes in the output of an all-gather.
func (a *typed[T]) start(rank int) int {
	if a.displs != nil {
		return a.displs[rank]
	}
	at := 0
	for _, n := range a.job.counts[:rank] {
		at += n
	}
	return at
}

func (a *typed[T]) call(ctx context.Context, opts ...ccl.CallOption) error {
	err := a.collective(ctx, opts...)
	if err == nil {
		a.rank.trace.set(outside, 0)
	}
	a.rank.g.alive.Add(1)
	return err
}

func (a *typed[T]) collective(ctx context.Context, opts ...ccl.CallOption) error {
	switch c := a.rank.comm; a.job.coll {
	case ccl.CollAllReduce:
		return ccl.AllReduce(ctx, c, a.in, a.out, a.job.op, opts...)
	case ccl.CollAllGather:
		return ccl.AllGatherV(ctx, c, a.in, a.out, a.job.counts, a.displs, opts...)
	default:
		return ccl.Broadcast(ctx, c, a.out, a.job.root, opts...)
	}
}

func (a *typed[T]) right() error {
	j := a.job
	switch j.coll {
	case ccl.CollAllReduce:
		return a.rightReduction()
	case ccl.CollAllGather:
		for r, n := range j.counts {
			at := a.start(r)
			for i, got := range a.out[at : at+n] {
				if want := value[T](j, r, i); !identical(got, want) {
					return fmt.Errorf("element %d of rank %d's input arrived as %v instead of %v", i, r, got, want)
				}
			}
		}
		return nil
	}
	for i, got := range a.out {
		if want := value[T](j, j.root, i); !identical(got, want) {
			return fmt.Errorf("element %d is %v instead of %v", i, got, want)
		}
	}
	return nil
}

func (a *typed[T]) rightReduction() error {
	j, n := a.job, a.rank.n
	j.once.Do(func() {
		want, xs := make([]T, j.count), make([]T, n)
		for i := range want {
			want[i] = fold(j.op, inputs(j, i, xs))
		}
		j.expected = want
	})
	want := j.expected.([]T)
	for i, got := range a.out {
		if identical(got, want[i]) {
			continue
		}
		if xs := inputs(j, i, make([]T, n)); a.rank.g.s.rankOrdered || j.numbers != rough || !near(j.op, got, want[i], xs) {
			return fmt.Errorf("element %d is %v instead of %v, the %v of %v%s", i, got, want[i], j.op, xs, slip(j, got, want[i], xs))
		}
	}
	return nil
}

// inputs fills xs with element i of all ranks' inputs.
func inputs[T number](j *job, i int, xs []T) []T {
	for r := range xs {
		xs[r] = value[T](j, r, i)
	}
	return xs
}

// slip says which common mistake makes got of want, the result of xs; "" if none
// that it knows.
func slip[T number](j *job, got, want T, xs []T) string {
	is := func(op ccl.Op, x T) bool {
		return x != 0 && (identical(got, x) || j.numbers == rough && near(op, got, x, xs))
	}
	switch {
	case j.op != ccl.Avg:
		return ""
	case is(ccl.Sum, fold(ccl.Sum, xs)):
		return ": it is the sum; Finish is missing"
	case is(ccl.Avg, want/T(len(xs))):
		return ": it has been divided twice; Finish was called twice, or by two ranks"
	}
	return ""
}

// isRoot reports whether the one buffer is the input of a broadcast.
func (a *typed[T]) isRoot() bool {
	return a.job.coll == ccl.CollBroadcast && a.rank.me == a.job.root
}

// output reports whether element i of the memory that out lies in may be written.
func (a *typed[T]) output(i int) bool {
	if a.isRoot() {
		return false
	}
	i -= fence/ccl.DTypeOf[T]().Size() + a.job.shift
	if i < 0 || i >= len(a.out) || a.job.coll != ccl.CollAllGather {
		return i >= 0 && i < len(a.out)
	}
	for r, n := range a.job.counts {
		if at := a.start(r); at <= i && i < at+n {
			return true
		}
	}
	return false
}

func (a *typed[T]) fences() error {
	for k, m := range a.memory {
		for i, got := range m {
			if k == 0 && a.output(i) || identical(got, a.before[k][i]) {
				continue
			}
			return fmt.Errorf("%s has been written: %v became %v", a.place(k, i), a.before[k][i], got)
		}
	}
	return nil
}

// place says what element i of allocation k is.
func (a *typed[T]) place(k, i int) string {
	name, buffer, shift := "output", a.out, a.job.shift
	switch {
	case k > 0:
		name, buffer, shift = "input", a.in, 2*shift
	case a.isRoot():
		name = "root's buffer"
	}
	switch at := i - fence/ccl.DTypeOf[T]().Size() - shift; {
	case at < 0:
		return fmt.Sprintf("memory in front of the %s, at element %d,", name, at)
	case at >= len(buffer):
		return fmt.Sprintf("memory behind the %s of %d elements, at element %d,", name, len(buffer), at)
	case name == "output":
		return fmt.Sprintf("element %d of the output, in a gap between the ranks' places,", at)
	default:
		return fmt.Sprintf("element %d of the %s", at, name)
	}
}

func (a *typed[T]) bits() []uint64 {
	b := make([]uint64, len(a.out))
	for i, x := range a.out {
		b[i] = math.Float64bits(float64(x))
	}
	return b
}

func spoiled[T number](i int) T { return T(33 + i%5) }

func (a *typed[T]) spoil() {
	for _, m := range a.memory {
		for i := range m {
			m[i] = spoiled[T](i)
		}
	}
}

func (a *typed[T]) untouched() error {
	for _, m := range a.memory {
		for i, got := range m {
			if got != spoiled[T](i) {
				return fmt.Errorf("after its call had returned one of its buffers was written: element %d became %v", i, got)
			}
		}
	}
	return nil
}
