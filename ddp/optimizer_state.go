package ddp

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// NewOptimizerState makes state of the optimizer, such as a momentum: zeros for each element of
// this rank's parts, by the number of the parameter. Its type may be another than the parameter's.
//
//	momentum, err := ddp.NewOptimizerState[float32](model, "momentum")
//	...
//	err = ddp.Step(ctx, model, func(p ddp.Part[float32]) {
//		sgd(p.Values, momentum[p.Parameter], p.Gradient)
//	})
//
// Save and Load have it as well, as a tensor for each parameter that is named after it, such as
// "weight.momentum". With Options.Shard, Save gathers the tensors: rank 0 needs memory for all of
// them, and the others for the longest. Load gives each rank its parts. So the file is the one
// without Shard, and another number of ranks can load it. All ranks make the same state, in the
// same order, and before Load.
//
// A name that a tensor has already is an *ccl.InvalidArgumentError. After the end of the Reducer or
// of its group the error is ccl.ErrClosed.
func NewOptimizerState[T Float](r *Reducer, name string) ([][]T, error) {
	if err := r.retain("NewOptimizerState"); err != nil {
		return nil, err
	}
	defer r.comm.Release()
	r.mu.Lock()
	defer r.mu.Unlock()

	var parts [][]T
	var states []Tensor
	for i := range r.params {
		part, state := newState[T](r, i, name)
		parts, states = append(parts, part), append(states, state)
	}
	if err := r.addStates("NewOptimizerState", states); err != nil {
		return nil, err
	}
	return parts, nil
}

// addStates adds state of the optimizer to checkpoints. The caller holds mu.
func (r *Reducer) addStates(operation string, states []Tensor) error {
	isTaken := map[string]bool{}
	for _, t := range r.tensors(r.states, nil) {
		isTaken[t.name] = true
	}
	for _, state := range states {
		if isTaken[state.name] {
			return invalid("ddp."+operation, "there is a tensor %q already: choose another name", state.name)
		}
		isTaken[state.name] = true
	}
	r.states = append(r.states, states...)
	return nil
}

// newState makes zeros for this rank's part of a parameter.
func newState[T Float](r *Reducer, parameter int, name string) ([]T, Tensor) {
	p := &r.params[parameter]
	state := &stateOf[T]{whole: p.elements.count()}
	for rank := range r.comm.Size() {
		low, high := r.partOf(parameter, rank)
		state.counts = append(state.counts, high-low)
	}

	low, high := r.partOf(parameter, r.comm.Rank())
	state.vector, state.first = make(vector[T], high-low), low
	t := Tensor{fmt.Sprint(p.name, ".", name), slices.Clone(p.shape), state}
	if !r.opts.Shard {
		t.elements = state.vector
	}
	return state.vector, t
}

// stateOf is the part that a rank has of a tensor.
type stateOf[T Float] struct {
	vector[T]
	first, whole int   // where it begins, and the length of the whole
	counts       []int // the lengths of the parts of all ranks
}

func (s *stateOf[T]) count() int { return s.whole }

func (s *stateOf[T]) fresh() elements {
	return &stateOf[T]{vector: make(vector[T], len(s.vector)), first: s.first, whole: s.whole}
}

// decode reads the part, and all bytes.
func (s *stateOf[T]) decode(r io.Reader, sums io.Writer) error {
	size := s.dtype().Size()
	if _, err := io.CopyN(sums, r, int64(size*s.first)); err != nil {
		return err
	}
	if err := s.vector.decode(r, sums); err != nil {
		return err
	}
	_, err := io.CopyN(sums, r, int64(size*(s.whole-s.first-len(s.vector))))
	return err
}

// copyFrom copies the part, from the same one or from the whole.
func (s *stateOf[T]) copyFrom(from elements) {
	if part, ok := from.(*stateOf[T]); ok {
		copy(s.vector, part.vector)
	} else {
		copy(s.vector, from.(vector[T])[s.first:])
	}
}

// gather returns the whole. It is an all-gather, since not all algorithms have a gather.
func (s *stateOf[T]) gather(ctx context.Context, c *ccl.Communicator, label string) (elements, error) {
	whole := make(vector[T], s.whole)
	return whole, ccl.AllGatherV(ctx, c, []T(s.vector), whole, s.counts, nil, ccl.WithLabel(label), ccl.WithKey("ddp "+label))
}

// gatherStates returns the state of the optimizer, whole on rank 0.
func (r *Reducer) gatherStates(ctx context.Context) ([]Tensor, error) {
	states := slices.Clone(r.states)
	for i, t := range states {
		part, ok := t.elements.(interface {
			gather(ctx context.Context, c *ccl.Communicator, label string) (elements, error)
		})
		if !ok || t.elements.count() == 0 {
			continue
		}

		whole, err := part.gather(ctx, r.comm, fmt.Sprintf("state %q", t.name))
		if err != nil {
			return nil, inCall(err)
		}
		if r.comm.Rank() == 0 {
			states[i].elements = whole
		}
	}
	return states, nil
}
