package primitive

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/agree"
	"github.com/goccl/goccl/internal/failure"
	"github.com/goccl/goccl/internal/memory"
	"github.com/goccl/goccl/partition"
)

// Operator is a linear map between tensors that live on many workers.
type Operator[T Number] interface {
	// Forward returns F x: this worker's part of the result. If y is not nil and has the result's
	// shape, Forward writes to it and returns it; otherwise it returns a new tensor. x is not changed,
	// and y must not share memory with it unless the operator allows it.
	Forward(ctx context.Context, y, x *Tensor[T]) (*Tensor[T], error)

	// Adjoint returns F* y, in x, in the same way.
	Adjoint(ctx context.Context, x, y *Tensor[T]) (*Tensor[T], error)

	// Close ends this worker's use of the operator. It does not communicate.
	Close() error
}

// group is a team of workers that an operator moves data in.
type group struct {
	*partition.Partition
	kind   kind
	comm   *ccl.Communicator
	label  ccl.CallOption   // of the operator's calls
	header [headerWords]int // of this worker
	all    []int
}

// newGroup returns nil on an inactive worker. dim is the dimension of tensors that the operator
// works in, if it works in one.
func newGroup(p *partition.Partition, k kind, dim int) *group {
	if !p.Active() {
		return nil
	}
	g := &group{Partition: p, kind: k, comm: p.Communicator(), label: ccl.WithLabel(k.String()), all: make([]int, headerWords*p.Size())}
	g.header[operatorAt] = int(k) | dim<<8
	return g
}

// kind is an operator.
type kind uint8

const (
	allSumReduce kind = iota
	broadcast
	sumReduce
	repartition
	haloExchange
	allGather
	reduceScatter
)

var kindNames = [...]string{"all_sum_reduce", "broadcast", "sum_reduce", "repartition", "halo_exchange", "all_gather", "reduce_scatter"}

func (k kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("operator(%d)", uint8(k))
}

func (g *group) close() error {
	if g == nil {
		return nil
	}
	return g.Close()
}

// A header is what each worker of a team shows the others at the beginning of a call: the operator,
// the call, the type, and the number and extents of the dimensions of its tensor, or -1 if it
// passes none.
const (
	headerWords = 4 + MaxDims
	operatorAt  = 0
	callAt      = 1
	typeAt      = 2
	dimsAt      = 3
	shapeAt     = 4
)

// call is what a worker asks of an operator.
type call int

const (
	forward call = iota
	adjoint
)

func (c call) String() string { return [...]string{"forward", "adjoint"}[c] }

// exchangeHeaders shows all workers of the team each other's headers; part is whether this worker
// has a part of the input. It fails on all workers alike if they make different calls.
func exchangeHeaders[T Number](ctx context.Context, g *group, c call, x *Tensor[T], part bool) error {
	g.header[callAt], g.header[typeAt], g.header[dimsAt] = int(c), int(ccl.DTypeOf[T]()), -1
	if x.Len() > 0 || x != nil && part {
		g.header[dimsAt] = len(x.shape)
		copy(g.header[shapeAt:], x.shape)
	}
	if err := ccl.AllGather(ctx, g.comm, g.header[:], g.all, g.label); err != nil {
		return err
	}

	for r := range g.Size() {
		if !slices.Equal(g.headerOf(r)[:dimsAt], g.header[:dimsAt]) {
			return g.failed(agree.Compare(ctx, g.comm, nil, []agree.Fact{
				{Name: "operator", Value: fmt.Sprint(g.kind, " in dimension ", g.header[operatorAt]>>8)},
				{Name: "call", Value: c.String()},
				{Name: "dtype", Value: ccl.DTypeOf[T]().String()},
			}, g.label))
		}
	}
	return nil
}

// failed returns the error of workers that bring different values.
func (g *group) failed(differ error) error {
	return fmt.Errorf("primitive: %v of workers %d: %w", g.kind, g.Workers(), differ)
}

// shapesDiffer returns the error of workers, from rank first on, that pass tensors of different
// shapes.
func (g *group) shapesDiffer(first int) error {
	shapes := map[int]string{}
	for r := first; r < g.Size(); r++ {
		shapes[r] = g.shapeText(r)
	}
	return g.failed(agree.Difference(g.comm, "shape", shapes))
}

// share returns the error of all workers because of some ranks of the team, or of all alike if
// ranks is nil.
func (g *group) share(ranks []int, format string, args ...any) error {
	return share(g.Partition, g.kind, ranks, format, args...)
}

// share is the method share for a partition.
func share(p *partition.Partition, k kind, ranks []int, format string, args ...any) error {
	return failure.Share(invalid(k.String(), format, args...), p.Workers(), ranks...)
}

// ranksThat returns the ranks for which is reports so.
func (g *group) ranksThat(is func(r int) bool) (ranks []int) {
	for r := range g.Size() {
		if is(r) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// headerOf returns the header of a rank.
func (g *group) headerOf(r int) []int { return g.all[r*headerWords : (r+1)*headerWords] }

// has reports whether a rank passes a tensor.
func (g *group) has(r int) bool { return g.headerOf(r)[dimsAt] >= 0 }

// dims returns the shape of a rank's tensor, which it passes, as the header has it.
func (g *group) dims(r int) []int {
	h := g.headerOf(r)
	return h[shapeAt : shapeAt+h[dimsAt]]
}

// shapeText returns the shape of a rank's tensor in words.
func (g *group) shapeText(r int) string {
	if !g.has(r) {
		return "no tensor"
	}
	return fmt.Sprint(g.dims(r))
}

// volume returns the number of elements of a rank's tensor, which it passes.
func (g *group) volume(r int) int { return volume(g.dims(r)) }

// checkSameShape returns an error unless the ranks from first on pass tensors of the same shape.
func (g *group) checkSameShape(first int) error {
	for r := first; r < g.Size(); r++ {
		if !g.has(r) || !slices.Equal(g.dims(r), g.dims(first)) {
			return g.shapesDiffer(first)
		}
	}
	return nil
}

// checkInputs returns an error unless exactly the ranks for which needs reports so pass a tensor.
func (g *group) checkInputs(needs func(r int) bool) error {
	if none := g.ranksThat(func(r int) bool { return needs(r) && !g.has(r) }); none != nil {
		return g.share(none, "rank %d of the group %s passes no tensor, and has a part of the input", none[0], g.name())
	}
	if more := g.ranksThat(func(r int) bool { return !needs(r) && g.has(r) }); more != nil {
		return g.share(more, "rank %d of the group %s passes a tensor of shape %s, and has no part of the input", more[0], g.name(), g.shapeText(more[0]))
	}
	return nil
}

// name names the team in messages.
func (g *group) name() string { return fmt.Sprint("of workers ", g.Workers()) }

// scratch is memory for tensors whose elements do not lie next to each other, and for messages.
type scratch[T Number] struct{ memory memory.Scratch }

// take returns memory for n elements, until the next take.
func (s *scratch[T]) take(n int) []T { return memory.Elements[T](&s.memory, n) }

// packed returns the elements of x next to each other: x's own memory, or a copy.
func (s *scratch[T]) packed(x *Tensor[T]) []T {
	if data := x.Data(); data != nil || x.Len() == 0 {
		return data
	}
	data := s.take(x.Len())
	x.copyTo(data)
	return data
}

// target returns memory for the elements of y: y's own, or some that unpack copies to y.
func (s *scratch[T]) target(y *Tensor[T]) []T {
	if data := y.Data(); data != nil {
		return data
	}
	return s.take(y.Len())
}

// unpack copies what target returned to y, if it is not y's own memory.
func unpack[T Number](y *Tensor[T], memory []T) {
	if y.contiguous() {
		return
	}
	y.copyOf(memory)
}
