package primitive

import (
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// MaxDims is the largest number of dimensions of a tensor.
const MaxDims = 14

// Number is the set of types that tensors have: the elements of package ccl that Go can add,
// except uintptr.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Tensor is a dense tensor in memory of this worker, or a rectangular part of one. Copies of its
// slices and views made by Slice share its elements.
type Tensor[T Number] struct {
	data    []T // begins with the element at index 0, 0, ...
	shape   []int
	strides []int // in elements; that of the last dimension is 1
}

// NewTensor returns a tensor of zeros. It panics if there are more than MaxDims dimensions or an
// extent is negative, as make does for a negative length.
func NewTensor[T Number](shape ...int) *Tensor[T] {
	if err := checkShape(shape); err != nil {
		panic(err)
	}
	return dense(make([]T, volume(shape)), slices.Clone(shape))
}

// TensorOf returns a tensor whose elements are data, row-major. It returns
// *ccl.InvalidArgumentError if the shape does not have as many elements.
func TensorOf[T Number](data []T, shape ...int) (*Tensor[T], error) {
	if err := checkShape(shape); err != nil {
		return nil, err
	}
	if volume(shape) != len(data) {
		return nil, invalid("tensor", "the shape %d does not have %d elements", shape, len(data))
	}
	return dense(data, slices.Clone(shape)), nil
}

func checkShape(shape []int) error {
	if len(shape) > MaxDims {
		return invalid("tensor", "the shape %d has %d dimensions, and at most %d are possible", shape, len(shape), MaxDims)
	}

	n := 1
	for d, extent := range shape {
		switch {
		case extent < 0:
			return invalid("tensor", "the shape %d is negative in dimension %d", shape, d)
		case extent > 0 && n > math.MaxInt/extent:
			return invalid("tensor", "the shape %d has too many elements", shape)
		}
		n *= max(1, extent)
	}
	return nil
}

// dense returns a tensor that takes over data and shape.
func dense[T Number](data []T, shape []int) *Tensor[T] {
	return &Tensor[T]{data: data, shape: shape, strides: denseStrides(new([MaxDims]int), shape)}
}

// denseStrides stores the strides of a dense tensor in memory, and returns them.
func denseStrides(memory *[MaxDims]int, shape []int) []int {
	step := 1
	for d := len(shape) - 1; d >= 0; d-- {
		memory[d] = step
		step *= shape[d]
	}
	return memory[:len(shape)]
}

// volume returns the number of elements of a shape.
func volume(shape []int) int {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	return n
}

// Shape returns the extents of t. The slice belongs to the caller.
func (t *Tensor[T]) Shape() []int { return slices.Clone(t.shape) }

// Len returns the number of elements; 0 for nil.
func (t *Tensor[T]) Len() int {
	if t == nil || len(t.data) == 0 {
		return 0
	}
	return volume(t.shape)
}

// Data returns the elements, row-major, if they lie next to each other, as in every tensor that
// Slice has not cut. The slice is the tensor's memory. If they do not, Data returns nil: copy such
// a part with CopyFrom first.
func (t *Tensor[T]) Data() []T {
	if !t.contiguous() {
		return nil
	}
	return t.data[:t.Len():t.Len()]
}

func (t *Tensor[T]) contiguous() bool {
	step := 1
	for d := len(t.shape) - 1; d >= 0; d-- {
		if t.shape[d] != 1 && t.strides[d] != step {
			return volume(t.shape) == 0
		}
		step *= t.shape[d]
	}
	return true
}

// at returns the position of an index. It panics, as a slice does, if the index is out of range.
func (t *Tensor[T]) at(index []int) (position int) {
	if len(index) != len(t.shape) {
		panic(fmt.Sprintf("primitive: the index %d has %d dimensions, and the tensor %d has %d", index, len(index), t.shape, len(t.shape)))
	}
	for d, i := range index {
		if i < 0 || i >= t.shape[d] {
			panic(fmt.Sprintf("primitive: the index %d is out of the range of the tensor %d", index, t.shape))
		}
		position += i * t.strides[d]
	}
	return position
}

// At returns an element. It panics if the index is out of range.
func (t *Tensor[T]) At(index ...int) T { return t.data[t.at(index)] }

// Set sets an element. It panics if the index is out of range.
func (t *Tensor[T]) Set(value T, index ...int) { t.data[t.at(index)] = value }

// Slice returns the part of t in a range of each dimension; dimensions without one are kept whole.
// It panics, as a slice expression does, if a range is out of range.
func (t *Tensor[T]) Slice(ranges ...ccl.Range) *Tensor[T] {
	part := &Tensor[T]{shape: slices.Clone(t.shape), strides: slices.Clone(t.strides)}
	part.cut(t, ranges)
	return part
}

// cut makes t, which has the strides of whole, the part of whole in the ranges.
func (t *Tensor[T]) cut(whole *Tensor[T], ranges []ccl.Range) {
	if len(ranges) > len(whole.shape) {
		panic(fmt.Sprintf("primitive: %d ranges of the tensor %d", len(ranges), whole.shape))
	}
	position := 0
	for d, r := range ranges {
		if r.Lo < 0 || r.Hi < r.Lo || r.Hi > whole.shape[d] {
			panic(fmt.Sprintf("primitive: the range %d to %d of dimension %d of the tensor %d", r.Lo, r.Hi, d, whole.shape))
		}
		position += r.Lo * whole.strides[d]
		t.shape[d] = r.Hi - r.Lo
	}
	t.data = whole.data[min(position, len(whole.data)):]
}

// Fill sets all elements to value.
func (t *Tensor[T]) Fill(value T) {
	var w walk
	for w.begin(t.shape, t.strides, t.strides); w.next(); {
		row := t.data[w.a : w.a+w.run]
		if value == 0 {
			clear(row)
			continue
		}
		for i := range row {
			row[i] = value
		}
	}
}

// CopyFrom copies the elements of src, which has the same shape, to t. It returns
// *ccl.InvalidArgumentError if the shapes differ. The two may be the same tensor, and must not
// overlap otherwise.
func (t *Tensor[T]) CopyFrom(src *Tensor[T]) error {
	if !slices.Equal(t.shape, src.shape) {
		return invalid("copy", "the shapes %d and %d differ", t.shape, src.shape)
	}
	t.copy(src)
	return nil
}

// copy is CopyFrom for equal shapes.
func (t *Tensor[T]) copy(src *Tensor[T]) { copyRuns(t.shape, t.data, t.strides, src.data, src.strides) }

// copyTo copies the elements, row-major, to memory.
func (t *Tensor[T]) copyTo(memory []T) {
	var strides [MaxDims]int
	copyRuns(t.shape, memory, denseStrides(&strides, t.shape), t.data, t.strides)
}

// copyOf copies the elements, row-major, from memory.
func (t *Tensor[T]) copyOf(memory []T) {
	var strides [MaxDims]int
	copyRuns(t.shape, t.data, t.strides, memory, denseStrides(&strides, t.shape))
}

// copyRuns copies elements of a shape.
func copyRuns[T Number](shape []int, to []T, stepsTo []int, from []T, stepsFrom []int) {
	var w walk
	for w.begin(shape, stepsTo, stepsFrom); w.next(); {
		to, from := to[w.a:w.a+w.run], from[w.b:w.b+w.run]
		if w.run >= callRun {
			copy(to, from)
			continue
		}
		for i := range to {
			to[i] = from[i]
		}
	}
}

// addOf adds the elements in memory, row-major, to those of t.
func (t *Tensor[T]) addOf(memory []T) {
	var strides [MaxDims]int
	var w walk
	for w.begin(t.shape, t.strides, denseStrides(&strides, t.shape)); w.next(); {
		to, from := t.data[w.a:w.a+w.run], memory[w.b:w.b+w.run]
		from = from[:len(to)]
		for len(to) >= 4 { // four at a time, without checks of bounds between them
			a, b := to[:4], from[:4]
			a[0] += b[0]
			a[1] += b[1]
			a[2] += b[2]
			a[3] += b[3]
			to, from = to[4:], from[4:]
		}
		for i := range to {
			to[i] += from[i]
		}
	}
}

// callRun is the number of elements from which a call of copy is faster than a loop.
const callRun = 8

// walk goes through two tensors of one shape in runs of elements that lie next to each other in
// both.
type walk struct {
	a, b, run int // positions and length of a run
	dims      int // of the steps between runs
	index     [MaxDims]int
	shape     [MaxDims]int
	stepA     [MaxDims]int
	stepB     [MaxDims]int
	started   bool
}

// begin starts a walk.
func (w *walk) begin(shape, a, b []int) {
	w.run, w.dims = 1, len(shape)
	for w.dims > 0 && (shape[w.dims-1] == 1 || a[w.dims-1] == w.run && b[w.dims-1] == w.run) {
		w.dims--
		w.run *= shape[w.dims]
	}
	copy(w.shape[:], shape[:w.dims])
	copy(w.stepA[:], a[:w.dims])
	copy(w.stepB[:], b[:w.dims])
	if volume(shape) == 0 {
		w.dims = -1
	}
}

// next goes to the next run, if there is one.
func (w *walk) next() bool {
	if !w.started {
		w.started = true
		return w.dims >= 0
	}

	for d := w.dims - 1; d >= 0; d-- {
		w.index[d]++
		w.a += w.stepA[d]
		w.b += w.stepB[d]
		if w.index[d] < w.shape[d] {
			return true
		}
		w.a -= w.stepA[d] * w.shape[d]
		w.b -= w.stepB[d] * w.shape[d]
		w.index[d] = 0
	}
	return false
}

// part is a part of a tensor whose shape needs no memory of its own for each use.
type part[T Number] struct {
	tensor Tensor[T]
	shape  [MaxDims]int
}

// of makes the part of t in the ranges. It is valid until the next of.
func (p *part[T]) of(t *Tensor[T], ranges []ccl.Range) *Tensor[T] {
	p.tensor.shape = append(p.shape[:0], t.shape...)
	p.tensor.strides = t.strides
	p.tensor.cut(t, ranges)
	return &p.tensor
}

// reuse returns y, if it has the shape, and a new tensor otherwise.
func reuse[T Number](y *Tensor[T], shape []int) *Tensor[T] {
	if y != nil && slices.Equal(y.shape, shape) {
		return y
	}
	return NewTensor[T](shape...)
}

// none returns y, if it has no elements and one dimension, and such a tensor otherwise.
func none[T Number](y *Tensor[T]) *Tensor[T] { return reuse(y, empty) }

// empty is the shape of results on workers that have none.
var empty = []int{0}

func invalid(operation, format string, args ...any) error {
	return &ccl.InvalidArgumentError{Operation: "primitive." + operation, Message: fmt.Sprintf(format, args...)}
}
