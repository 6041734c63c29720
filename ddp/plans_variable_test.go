package ddp_test

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
)

// A variable is a parameter or a buffer of a rank, whatever its type is. Its numbers are float64s.
type variable interface {
	parameter(name string, isView bool) ddp.Parameter
	tensor(name string) ddp.Tensor
	values() []float64
	// add adds numbers, each multiplied by a factor.
	add(numbers []float64, factor float64)
	// gradient returns the numbers of parameter p's gradient, or nil if there is none.
	gradient(r *ddp.Reducer, p int) []float64
	setGradient(r *ddp.Reducer, p int, numbers []float64)
	// readyAnew is ReadyGrad of a slice that is made anew.
	readyAnew(r *ddp.Reducer, p int, numbers []float64)
}

// newVariable makes a variable of a type.
func newVariable(t ccl.DType, numbers []float64) variable {
	switch t {
	case ccl.Float32:
		return &variableOf[float32]{made[float32](numbers)}
	case ccl.Float64:
		return &variableOf[float64]{made[float64](numbers)}
	case ccl.Float16:
		return &variableOf[half.Float16]{made[half.Float16](numbers)}
	case ccl.BFloat16:
		return &variableOf[half.BFloat16]{made[half.BFloat16](numbers)}
	}
	panic(fmt.Sprint("no variable is of ", t))
}

type variableOf[T ddp.Float] struct{ data []T }

func (v *variableOf[T]) parameter(name string, isView bool) ddp.Parameter {
	if isView {
		return ddp.Param(name, v.data, nil)
	}
	return ddp.Param(name, v.data, make([]T, len(v.data)))
}

func (v *variableOf[T]) tensor(name string) ddp.Tensor { return ddp.Buffer(name, v.data) }

func (v *variableOf[T]) values() []float64 { return floats(v.data) }

func (v *variableOf[T]) add(numbers []float64, factor float64) {
	sums := floats(v.data)
	for i := range numbers {
		sums[i] += factor * numbers[i]
	}
	setFloats(v.data, sums)
}

func (v *variableOf[T]) gradient(r *ddp.Reducer, p int) []float64 { return floats(ddp.Grad[T](r, p)) }

func (v *variableOf[T]) setGradient(r *ddp.Reducer, p int, numbers []float64) {
	setFloats(ddp.Grad[T](r, p), numbers)
}

func (v *variableOf[T]) readyAnew(r *ddp.Reducer, p int, numbers []float64) {
	ddp.ReadyGrad(r, p, made[T](numbers))
}

// made returns a slice of numbers.
func made[T ddp.Float](numbers []float64) []T {
	to := make([]T, len(numbers))
	setFloats(to, numbers)
	return to
}

// floats returns numbers as float64s; of nil it returns nil.
func floats[T ddp.Float](from []T) (to []float64) {
	if from != nil {
		to = make([]float64, len(from))
	}
	switch from := any(from).(type) {
	case []float32:
		for i, x := range from {
			to[i] = float64(x)
		}
	case []float64:
		copy(to, from)
	case []half.Float16:
		for i, x := range from {
			to[i] = float64(x.Float32())
		}
	case []half.BFloat16:
		for i, x := range from {
			to[i] = float64(x.Float32())
		}
	}
	return to
}

// setFloats rounds numbers to a type.
func setFloats[T ddp.Float](to []T, numbers []float64) {
	switch to := any(to).(type) {
	case []float32:
		for i := range to {
			to[i] = float32(numbers[i])
		}
	case []float64:
		copy(to, numbers)
	case []half.Float16:
		for i := range to {
			to[i] = half.NewFloat16(float32(numbers[i]))
		}
	case []half.BFloat16:
		for i := range to {
			to[i] = half.NewBFloat16(float32(numbers[i]))
		}
	}
}
