package ddp

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/half"
)

// Float is the set of types that parameters and gradients have.
type Float interface {
	float32 | float64 | half.Float16 | half.BFloat16
}

// Storable is the set of types that tensors have which are not trained: those of the format of
// checkpoints.
type Storable interface {
	Float | bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// Tensor is a named slice of one of the Storable types: see Buffer and ReadCheckpoint.
type Tensor struct {
	name     string
	shape    []int
	elements elements // nil in the zero Tensor
}

// Buffer returns a tensor that is state and is not trained, such as running means or an optimizer's
// momentum (torch's register_buffer). Its type may be another than that of parameters.
//
// The elements are in row-major order. Without a shape the tensor has one dimension; that of a
// scalar of torch, which has none, is []int{}.
func Buffer[T Storable](name string, data []T, shape ...int) Tensor {
	if shape == nil {
		shape = []int{len(data)}
	}
	return Tensor{name, slices.Clone(shape), vector[T](data)}
}

// Parameter is a tensor that is trained: see Param.
type Parameter struct {
	tensor      Tensor
	gradient    elements // nil: New makes it
	newGradient func(isInPlace bool) gradient
}

// Param returns a parameter of its values and its gradient, which have the same type and length
// (torch.nn.Parameter). The parameters of a model may have different types.
//
// All parameters have a gradient, or none has. If grad is nil, New makes the gradient: see Grad.
//
// The elements are in row-major order. Without a shape the parameter has one dimension.
func Param[T Float](name string, data, grad []T, shape ...int) Parameter {
	p := Parameter{tensor: Buffer(name, data, shape...)}
	p.newGradient = func(isInPlace bool) gradient { return &gradientOf[T]{program: grad, isInPlace: isInPlace} }
	if grad != nil {
		p.gradient = vector[T](grad)
	}
	return p
}

// text returns what all ranks have in common.
func (t Tensor) text() string { return fmt.Sprintf("%q, %v %d", t.name, t.elements.dtype(), t.shape) }

// check returns what is wrong with an argument of New. names has the names of those before,
// and gets the tensor's.
func (t Tensor) check(argument string, number int, names map[string]string) error {
	numbered := fmt.Sprint(argument, " ", number)
	if t.elements == nil {
		return fmt.Errorf("%s is the zero value: make it by Param or Buffer", numbered)
	}

	before, isTaken := names[t.name]
	names[t.name] = numbered
	switch {
	case isTaken:
		return fmt.Errorf("%s and %s have the same name %q: give each its own", before, numbered, t.name)
	case !isShapeOf(t.shape, t.elements.count()):
		return fmt.Errorf("%s %q has the shape %d and %d elements", argument, t.name, t.shape, t.elements.count())
	case t.name == metadataKey:
		return fmt.Errorf("%s has the name %q, which checkpoints need: give it another", numbered, t.name)
	}
	return nil
}

// checkArguments returns whether New makes the gradients, and what is wrong with the arguments.
func checkArguments(params []Parameter, opts *Options) (views bool, err error) {
	if len(params) == 0 {
		return false, errors.New("there are no parameters")
	}

	with, without, isHooked := 0, 0, !opts.Hooks.isSet()
	names := map[string]string{}
	for i, p := range params {
		if err := p.tensor.check("parameter", i, names); err != nil {
			return false, err
		}
		isHooked = isHooked || opts.Hooks.of(p.tensor.elements.dtype()) != nil
		count := p.tensor.elements.count()
		switch {
		case p.gradient == nil:
			without += min(count, 1) // one without elements has either form
		case p.gradient.count() == count:
			with += min(count, 1)
		default:
			return false, fmt.Errorf("parameter %q has %d elements, and its gradient %d", p.tensor.name, count, p.gradient.count())
		}
	}

	for i, b := range opts.Buffers {
		if err := b.check("buffer", i, names); err != nil {
			return false, err
		}
	}
	switch {
	case with > 0 && without > 0:
		return false, fmt.Errorf("%d of %d parameters have a gradient: all or none must have one", with, with+without)
	case !isHooked:
		return false, errors.New("hooks are set for types that no parameter has: Options.Hooks has a field for each type")
	}
	return with == 0, nil
}
