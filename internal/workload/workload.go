package workload

import (
	"fmt"
	"slices"
	"strings"
)

// Workload is a network.
type Workload struct {
	Name   string
	Source string // where it was published, and with which input its operations are counted
	Layers []Layer
}

// Layer is a part of a network whose gradients are final at the same time in backward.
type Layer struct {
	Operations int64 // multiply-adds of the forward pass, for one sample
	Parameters []Parameter
}

// Parameter is a tensor that is trained.
type Parameter struct {
	Name  string
	Shape []int
}

// Elements returns the number of elements.
func (p Parameter) Elements() int {
	n := 1
	for _, extent := range p.Shape {
		n *= extent
	}
	return n
}

var all = []Workload{lenet5(), resnet50(), bertBase(), vgg16(), gpt2Small()}

// Names returns the names of all workloads.
func Names() (names []string) {
	for _, w := range all {
		names = append(names, w.Name)
	}
	return names
}

// Named returns the workload of a name.
func Named(name string) (Workload, error) {
	i := slices.IndexFunc(all, func(w Workload) bool { return w.Name == name })
	if i < 0 {
		return Workload{}, fmt.Errorf("unknown workload %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	return all[i], nil
}

// Parameters returns the parameters in the order of the layers.
func (w Workload) Parameters() (all []Parameter) {
	for _, l := range w.Layers {
		all = append(all, l.Parameters...)
	}
	return all
}

// Elements returns the number of elements of all parameters.
func (w Workload) Elements() (n int) {
	for _, p := range w.Parameters() {
		n += p.Elements()
	}
	return n
}

// Operations returns the multiply-adds of the forward pass, for one sample.
func (w Workload) Operations() (n int64) {
	for _, l := range w.Layers {
		n += l.Operations
	}
	return n
}
