package calls

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// Attempt is one rank's part of a Call: its buffers, the call, and the checks afterwards.
type Attempt interface {
	// Make makes the call, and Start makes it asynchronously.
	Make(ctx context.Context, comm *ccl.Communicator, opts ...ccl.CallOption) error
	Start(ctx context.Context, comm *ccl.Communicator, opts ...ccl.CallOption) *ccl.Work

	Right() error       // checks that the output holds the result
	Fences() error      // checks that nothing else was written
	Note() error        // adds the bits of the result to the call's Results
	Arrived() *Arrivals // returns what has arrived in a call with inputs of one rank
	Renew(c *Call)      // prepares another call of the same kind in the same memory
	Spoil()             // overwrites everything, after the call
	Untouched() error   // checks that nothing was written since Spoil
}

// NewAttempt prepares the buffers of a rank. isOrdered declares that reductions have the bits of
// those in rank order, also where they round.
func NewAttempt(c *Call, rank int, isOrdered bool) Attempt {
	return KindOf(c.DType).attempt(c, rank, isOrdered)
}

// typed implements Attempt.
type typed[T ccl.Element] struct {
	*oracle[T]
	c         *Call
	rank      int
	isOrdered bool
	isEven    bool // the call is made in the form for blocks of equal length
	in, out   area[T]
	memory    [][]T // the allocations of in and out
	before    [][]T // their contents before the call
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
	around := fence / a.c.DType.Size()
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

func newAttempt[T ccl.Element](o *oracle[T], c *Call, rank int, isOrdered bool) *typed[T] {
	a := &typed[T]{oracle: o, c: c, rank: rank, isOrdered: isOrdered, isEven: c.IsEven()}
	in, out := c.input(rank), c.output(rank)
	at, isShared := c.InPlace(rank)
	switch {
	case isShared && out.length >= in.length:
		a.out = a.allocate(out, c.Shift)
		a.in = a.out.within(in, at)
	case isShared:
		a.in = a.allocate(in, c.Shift)
		a.out = a.in.within(out, at)

	default:
		a.out = a.allocate(out, c.Shift)
		a.in = a.allocate(in, c.Shift*2)
	}
	a.fill()
	return a
}

// fill writes the inputs of the call, and to the rest of the memory values that are neither
// zero nor left over from an earlier call.
func (a *typed[T]) fill() {
	for _, m := range a.memory {
		for i := range min(len(m), leftovers) {
			m[i] = a.leftover(i)
		}
		for n := leftovers; n < len(m); n *= 2 {
			copy(m[n:], m[:n])
		}
	}
	inputs := a.answersTo(a.c).inputs
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
	if a.c.isLone && a.c.only >= 0 {
		return a.of(0)
	}
	return a.of(90 + i%leftovers)
}

func (a *typed[T]) Renew(c *Call) {
	a.c, a.isEven = c, c.IsEven()
	a.fill()
}

func (a *typed[T]) Make(ctx context.Context, comm *ccl.Communicator, opts ...ccl.CallOption) error {
	c, in, out := a.c, a.in.elements, a.out.elements
	switch {
	case c.Coll == ccl.CollBarrier:
		return comm.Barrier(ctx, opts...)
	// Reductions to vectors of the inputs' length.
	case c.Tensors != nil:
		return ccl.AllReduceCoalesced(ctx, comm, a.tensors(), c.Op, opts...)
	case c.Coll == ccl.CollAllReduce:
		return ccl.AllReduce(ctx, comm, in, out, c.Op, opts...)
	case c.Coll == ccl.CollReduce:
		return ccl.Reduce(ctx, comm, in, out, c.Op, c.Root, opts...)
	case c.Coll == ccl.CollScan:
		return ccl.Scan(ctx, comm, in, out, c.Op, opts...)
	case c.Coll == ccl.CollExScan:
		return ccl.ExScan(ctx, comm, in, out, c.Op, opts...)
	// One buffer.
	case c.Coll == ccl.CollBroadcast:
		return ccl.Broadcast(ctx, comm, out, c.Root, opts...)
	}

	switch { // collectives of blocks, of equal length or not
	case c.Coll == ccl.CollReduceScatter && a.isEven:
		return ccl.ReduceScatter(ctx, comm, in, out, c.Op, opts...)
	case c.Coll == ccl.CollReduceScatter:
		return ccl.ReduceScatterV(ctx, comm, in, out, c.Op, c.Counts, opts...)
	case c.Coll == ccl.CollAllGather && a.isEven:
		return ccl.AllGather(ctx, comm, in, out, opts...)
	case c.Coll == ccl.CollAllGather:
		return ccl.AllGatherV(ctx, comm, in, out, c.Counts, a.out.displs, opts...)
	case c.Coll == ccl.CollGather && a.isEven:
		return ccl.Gather(ctx, comm, in, out, c.Root, opts...)
	case c.Coll == ccl.CollGather:
		return ccl.GatherV(ctx, comm, in, out, a.out.counts, a.out.displs, c.Root, opts...)
	// Blocks from one rank, or for each rank.
	case c.Coll == ccl.CollScatter && a.isEven:
		return ccl.Scatter(ctx, comm, in, out, c.Root, opts...)
	case c.Coll == ccl.CollScatter:
		return ccl.ScatterV(ctx, comm, in, a.in.counts, a.in.displs, out, c.Root, opts...)
	case a.isEven:
		return ccl.AllToAll(ctx, comm, in, out, opts...)
	}
	return ccl.AllToAllV(ctx, comm, in, a.in.counts, a.in.displs, out, a.out.counts, a.out.displs, opts...)
}

func (a *typed[T]) Start(ctx context.Context, comm *ccl.Communicator, opts ...ccl.CallOption) *ccl.Work {
	w := new(ccl.Work)
	_ = a.Make(ctx, comm, append(opts[:len(opts):len(opts)], ccl.WithWork(w))...) // w has the error
	return w
}

// tensors returns the parts of the output that a coalesced all-reduce takes.
func (a *typed[T]) tensors() (all [][]T) {
	rest := a.out.elements
	for _, n := range a.c.Tensors {
		all, rest = append(all, rest[:n]), rest[n:]
	}
	return all
}

func (a *typed[T]) Right() error {
	for _, b := range a.out.blocks {
		got := a.out.elements[b.at : b.at+b.n]
		if b.terms > 0 {
			if err := a.rightReduction(got, b); err != nil {
				return err
			}
			continue
		}
		wanted := a.answersTo(a.c).inputs[b.from][b.lo : b.lo+b.n]
		if sameBytes(got, wanted) {
			continue
		}

		for i, got := range got {
			want := wanted[i]
			switch {
			case a.identical(got, want):
			case len(a.out.blocks) > 1:
				return a.wrongf("element %d of rank %d's block arrived as %v instead of %v", i, b.from, got, want)
			default:
				return a.wrongf("element %d is %v instead of %v", i, got, want)
			}
		}
	}
	return nil
}

func (a *typed[T]) rightReduction(results []T, b block) error {
	c := a.c
	wanted := a.reductions(c, b.terms)[b.lo : b.lo+b.n]
	if sameBytes(results, wanted) {
		return nil
	}

	inputs, xs := a.answersTo(c), make([]T, b.terms)
	for i, got := range results {
		want := wanted[i]
		if a.identical(got, want) {
			continue
		}
		inputs.operands(b.lo+i, xs)
		ordered := a.isOrdered || c.Numbers != Rough
		if ordered && a.wide != nil && a.identical(got, a.wide(c.Op, xs)) {
			continue
		}

		if ordered || !a.near(c.Op, got, want, xs) {
			slip := a.slip(got, want, xs)
			found := a.wrongf("element %d is %v instead of %v, the %v of %v%s", i, got, want, c.Op, xs, slip)
			found.IsKnown = slip != ""
			return found
		}
	}
	return nil
}

func (a *typed[T]) wrongf(format string, values ...any) *WrongError {
	return &WrongError{Call: a.c, Rank: a.rank, text: fmt.Sprintf(format, values...)}
}

// slip names the common mistake that yields got instead of want, the reduction of xs; "" if
// it knows none.
func (a *typed[T]) slip(got, want T, xs []T) string {
	is := func(op ccl.Op, x T) bool {
		return !a.identical(x, a.of(0)) && (a.identical(got, x) || a.c.Numbers == Rough && a.near(op, got, x, xs))
	}
	switch {
	case a.c.Op != ccl.Avg || a.c.Numbers == Large: // sums of those are all infinite
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
	return a.c.Coll == ccl.CollBroadcast && a.rank == a.c.Root
}

func (a *typed[T]) Fences() error {
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
				return fmt.Errorf("%s was written: %v became %v", a.positionText(k, i), a.before[k][i], got)
			}
		}
	}
	return nil
}

// positionText describes element i of allocation k.
func (a *typed[T]) positionText(k, i int) string {
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

func (a *typed[T]) Note() error {
	results := &a.c.Results[a.rank]
	for _, b := range a.out.blocks {
		for _, x := range a.out.elements[b.at : b.at+b.n] {
			*results = append(*results, a.bits(x))
		}
	}
	return nil
}

func (a *typed[T]) Spoil() {
	for _, m := range a.memory {
		for i := range m {
			m[i] = a.of(33 + i%5)
		}
	}
}

func (a *typed[T]) Untouched() error {
	for _, m := range a.memory {
		for i, got := range m {
			if !a.identical(got, a.of(33+i%5)) {
				return fmt.Errorf("after its call had returned, one of its buffers was written: element %d became %v", i, got)
			}
		}
	}
	return nil
}

// WrongError is the error of a rank whose result is not the right one.
type WrongError struct {
	Call    *Call
	Rank    int
	IsKnown bool // the text names the mistake
	text    string
}

func (e *WrongError) Error() string { return e.text }
