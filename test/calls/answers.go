package calls

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/interleave"
)

// answers are the inputs of a call and the reductions of them. Ranks compute each once and share
// it: checking a call takes longer than the call, and under the race detector far longer.
type answers[T ccl.Element] struct {
	inputs [][]T // by rank

	mu      interleave.Mutex
	reduced map[int][]T // by the number of ranks, from 0 on, whose inputs are reduced
}

// answersTo returns the answers to a call, whose inputs must not change from then on.
func (o *oracle[T]) answersTo(c *Call) *answers[T] {
	c.once.Do(func() {
		all := &answers[T]{inputs: make([][]T, c.Ranks), reduced: make(map[int][]T)}
		for r := range all.inputs {
			all.inputs[r] = make([]T, c.input(r).elements())
			for i := range all.inputs[r] {
				all.inputs[r][i] = o.input(c, r, i)
			}
		}
		c.answers = all
	})
	return c.answers.(*answers[T])
}

// input returns element i of rank's input to a call.
func (o *oracle[T]) input(c *Call, rank, i int) T {
	switch {
	case !c.isLone:
		return o.value(c, rank, i)
	case rank == c.only:
		return o.of(lone(i, c.Ranks, o.smalls().inputs(c.Ranks)))
	}
	return o.of(0)
}

// reductions returns the reduction of the inputs of the first ranks to a call.
func (o *oracle[T]) reductions(c *Call, ranks int) []T {
	a := o.answersTo(c)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reduced[ranks] == nil {
		all, xs := make([]T, len(a.inputs[0])), make([]T, ranks)
		for i := range all {
			all[i] = o.reduce(c.Op, a.operands(i, xs))
		}
		a.reduced[ranks] = all
	}
	return a.reduced[ranks]
}

// operands fills xs with element i of the first ranks' inputs, in rank order.
func (a *answers[T]) operands(i int, xs []T) []T {
	for r := range xs {
		xs[r] = a.inputs[r][i]
	}
	return xs
}
