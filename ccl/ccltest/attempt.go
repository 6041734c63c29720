package ccltest

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// attempt is one rank's part of a job: its buffers, the call, and the checks afterwards.
type attempt interface {
	call(ctx context.Context, opts ...ccl.CallOption) error
	right() error  // checks that the output holds the result
	fences() error // checks that nothing else was written
	note() error   // adds the bits of the result to the job
	arrived() *arrivals
	renew(j *job)     // prepares another job of the same kind in the same memory
	spoil()           // overwrites everything, after the call
	untouched() error // checks that nothing was written since spoil
}

func (r *rank) attempt(j *job) attempt { return kindNamed(j.dtype).attempt(r, j) }

// typed implements attempt.
type typed[T ccl.Element] struct {
	*oracle[T]
	rank    *rank
	job     *job
	even    bool // the call is made in the form for blocks of equal length
	in, out area[T]
	memory  [][]T // the allocations of in and out
	before  [][]T // their contents before the call
}

// area is a buffer of a call. A broadcast's input is its output.
type area[T ccl.Element] struct {
	layout
	elements []T
	memory   int // index of the allocation
	at       int // first element in it
}

// fence is twice the length of the widest vector register, in bytes.
const fence = 128

// allocate returns a buffer with fences around it, shift elements off.
func (a *typed[T]) allocate(l layout, shift int) area[T] {
	around := fence / a.job.dtype.Size()
	b := area[T]{layout: l, memory: len(a.memory), at: around + shift}
	memory := make([]T, b.at+l.length+around)
	a.memory = append(a.memory, memory)
	b.elements = memory[b.at : b.at+l.length]
	return b
}

// within returns the part of b that begins at an element, as a buffer.
func (b area[T]) within(l layout, at int) area[T] {
	return area[T]{layout: l, memory: b.memory, at: b.at + at, elements: b.elements[at : at+l.length]}
}

func newAttempt[T ccl.Element](o *oracle[T], r *rank, j *job) *typed[T] {
	a := &typed[T]{oracle: o, rank: r, job: j, even: j.even()}
	send, recv := j.send(r.me), j.recv(r.me)
	at, shared := j.shared(r.me, send, recv)
	switch {
	case shared && recv.length >= send.length:
		a.out = a.allocate(recv, j.shift)
		a.in = a.out.within(send, at)
	case shared:
		a.in = a.allocate(send, j.shift)
		a.out = a.in.within(recv, at)
	default:
		a.out = a.allocate(recv, j.shift)
		a.in = a.allocate(send, j.shift*2)
	}
	a.fill()
	return a
}

// fill writes the inputs of the job, and to the rest of the memory values that are neither
// zero nor left over from an earlier job.
func (a *typed[T]) fill() {
	for _, m := range a.memory {
		for i := range min(len(m), leftovers) {
			m[i] = a.leftover(i)
		}
		for n := leftovers; n < len(m); n *= 2 {
			copy(m[n:], m[:n])
		}
	}
	inputs := a.answersTo(a.job).inputs
	for _, b := range a.in.blocks {
		copy(a.in.elements[b.at:b.at+b.n], inputs[b.from][b.lo:])
	}
	a.before = a.before[:0]
	for _, m := range a.memory {
		a.before = append(a.before, slices.Clone(m))
	}
}

// leftovers is the number of elements after which leftover repeats itself.
const leftovers = 7

// leftover returns what element i of memory holds before the call, if it is no input: nothing where
// the inputs of one rank are looked for.
func (a *typed[T]) leftover(i int) T {
	if a.job.lone && a.job.only >= 0 {
		return a.of(0)
	}
	return a.of(90 + i%leftovers)
}

func (a *typed[T]) renew(j *job) {
	a.job = j
	a.fill()
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
	j, c, in, out := a.job, a.rank.comm, a.in.elements, a.out.elements
	switch j.coll {
	case ccl.CollAllReduce:
		return ccl.AllReduce(ctx, c, in, out, j.op, opts...)
	case ccl.CollReduce:
		return ccl.Reduce(ctx, c, in, out, j.op, j.root, opts...)
	case ccl.CollScan:
		return ccl.Scan(ctx, c, in, out, j.op, opts...)
	case ccl.CollExScan:
		return ccl.ExScan(ctx, c, in, out, j.op, opts...)
	case ccl.CollBroadcast:
		return ccl.Broadcast(ctx, c, out, j.root, opts...)
	}
	switch { // collectives of blocks, of equal length or not
	case a.even && j.coll == ccl.CollReduceScatter:
		return ccl.ReduceScatter(ctx, c, in, out, j.op, opts...)
	case j.coll == ccl.CollReduceScatter:
		return ccl.ReduceScatterV(ctx, c, in, out, j.op, j.counts, opts...)
	case a.even && j.coll == ccl.CollAllGather:
		return ccl.AllGather(ctx, c, in, out, opts...)
	case j.coll == ccl.CollAllGather:
		return ccl.AllGatherV(ctx, c, in, out, j.counts, a.out.displs, opts...)
	case a.even && j.coll == ccl.CollGather:
		return ccl.Gather(ctx, c, in, out, j.root, opts...)
	case j.coll == ccl.CollGather:
		return ccl.GatherV(ctx, c, in, out, a.out.counts, a.out.displs, j.root, opts...)
	case a.even && j.coll == ccl.CollScatter:
		return ccl.Scatter(ctx, c, in, out, j.root, opts...)
	case j.coll == ccl.CollScatter:
		return ccl.ScatterV(ctx, c, in, a.in.counts, a.in.displs, out, j.root, opts...)
	case a.even:
		return ccl.AllToAll(ctx, c, in, out, opts...)
	}
	return ccl.AllToAllV(ctx, c, in, a.in.counts, a.in.displs, out, a.out.counts, a.out.displs, opts...)
}

func (a *typed[T]) right() error {
	for _, b := range a.out.blocks {
		got := a.out.elements[b.at : b.at+b.n]
		if b.terms > 0 {
			if err := a.rightReduction(got, b); err != nil {
				return err
			}
			continue
		}
		wanted := a.answersTo(a.job).inputs[b.from][b.lo : b.lo+b.n]
		if sameBytes(got, wanted) {
			continue
		}
		for i, got := range got {
			want := wanted[i]
			switch {
			case a.identical(got, want):
			case len(a.out.blocks) > 1:
				return a.wrong("element %d of rank %d's block arrived as %v instead of %v", i, b.from, got, want)
			default:
				return a.wrong("element %d is %v instead of %v", i, got, want)
			}
		}
	}
	return nil
}

func (a *typed[T]) rightReduction(results []T, b block) error {
	j := a.job
	wanted := a.reductions(j, b.terms)[b.lo : b.lo+b.n]
	if sameBytes(results, wanted) {
		return nil
	}
	inputs, xs := a.answersTo(j), make([]T, b.terms)
	for i, got := range results {
		want := wanted[i]
		if a.identical(got, want) {
			continue
		}
		inputs.operands(b.lo+i, xs)
		ordered := a.rank.g.s.rankOrdered || j.numbers != rough
		if ordered && a.wide != nil && a.identical(got, a.wide(j.op, xs)) {
			continue
		}
		if ordered || !a.near(j.op, got, want, xs) {
			slip := a.slip(got, want, xs)
			wrong := a.wrong("element %d is %v instead of %v, the %v of %v%s", i, got, want, j.op, xs, slip)
			wrong.known = slip != ""
			return wrong
		}
	}
	return nil
}

func (a *typed[T]) wrong(format string, values ...any) *wrongResult {
	return &wrongResult{job: a.job, rank: a.rank.me, text: fmt.Sprintf(format, values...)}
}

// slip names the common mistake that yields got instead of want, the reduction of xs; "" if
// it knows none.
func (a *typed[T]) slip(got, want T, xs []T) string {
	is := func(op ccl.Op, x T) bool {
		return !a.identical(x, a.of(0)) && (a.identical(got, x) || a.job.numbers == rough && a.near(op, got, x, xs))
	}
	switch {
	case a.job.op != ccl.Avg || a.job.numbers == large: // sums of those are all infinite
		return ""
	case is(ccl.Sum, a.reduce(ccl.Sum, xs)):
		return ": it is the sum; Epilogue was not called"
	case is(ccl.Avg, a.divided(want, len(xs))):
		return ": it was divided twice; Epilogue was called twice, or by two ranks"
	}
	return ""
}

// isRoot reports whether the buffer is the input of a broadcast.
func (a *typed[T]) isRoot() bool {
	return a.job.coll == ccl.CollBroadcast && a.rank.me == a.job.root
}

func (a *typed[T]) fences() error {
	if !a.isRoot() { // its output may be written
		before := a.before[a.out.memory][a.out.at:]
		for _, b := range a.out.blocks {
			copy(before[b.at:b.at+b.n], a.out.elements[b.at:])
		}
	}
	for k, m := range a.memory {
		if sameBytes(m, a.before[k]) {
			continue
		}
		for i, got := range m {
			if !a.identical(got, a.before[k][i]) {
				return fmt.Errorf("%s was written: %v became %v", a.place(k, i), a.before[k][i], got)
			}
		}
	}
	return nil
}

// place describes element i of allocation k.
func (a *typed[T]) place(k, i int) string {
	name, buffer := "output", a.out
	switch {
	case k != a.out.memory || a.in.length > a.out.length:
		name, buffer = "input", a.in
	case a.isRoot():
		name = "root's buffer"
	}
	switch at := i - buffer.at; {
	case at < 0:
		return fmt.Sprintf("memory in front of the %s, at element %d,", name, at)
	case at >= buffer.length:
		return fmt.Sprintf("memory behind the %s of %d elements, at element %d,", name, buffer.length, at)
	case name == "output" && len(buffer.blocks) > 0:
		return fmt.Sprintf("element %d of the output, in a gap between blocks,", at)
	case name == "output":
		return fmt.Sprintf("element %d of the output, which has no result,", at)
	default:
		return fmt.Sprintf("element %d of the %s", at, name)
	}
}

func (a *typed[T]) note() error {
	mine := &a.job.results[a.rank.me]
	for _, b := range a.out.blocks {
		for _, x := range a.out.elements[b.at : b.at+b.n] {
			*mine = append(*mine, a.bits(x))
		}
	}
	return nil
}

func (a *typed[T]) spoil() {
	for _, m := range a.memory {
		for i := range m {
			m[i] = a.of(33 + i%5)
		}
	}
}

func (a *typed[T]) untouched() error {
	for _, m := range a.memory {
		for i, got := range m {
			if !a.identical(got, a.of(33+i%5)) {
				return fmt.Errorf("after its call had returned, one of its buffers was written: element %d became %v", i, got)
			}
		}
	}
	return nil
}
