package ccltest

import (
	"sync"

	"github.com/goccl/goccl/ccl"
)

// answers are the inputs of a job and the reductions of them. Ranks compute each once and share it:
// checking a call takes longer than the call, and under the race detector far longer.
type answers[T ccl.Element] struct {
	inputs [][]T // by rank

	mu      sync.Mutex
	reduced map[int][]T // by the number of ranks, from 0 on, whose inputs are reduced
}

// answersTo returns the answers to a job, whose inputs must not change from then on.
func (o *oracle[T]) answersTo(j *job) *answers[T] {
	j.once.Do(func() {
		all := &answers[T]{inputs: make([][]T, j.ranks), reduced: make(map[int][]T)}
		for r := range all.inputs {
			all.inputs[r] = make([]T, elements(j.send(r)))
			for i := range all.inputs[r] {
				all.inputs[r][i] = o.input(j, r, i)
			}
		}
		j.answers = all
	})
	return j.answers.(*answers[T])
}

// input returns element i of rank's input to a job.
func (o *oracle[T]) input(j *job, rank, i int) T {
	switch {
	case !j.lone:
		return o.value(j, rank, i)
	case rank == j.only:
		return o.of(lone(i, j.ranks, o.smalls().inputs(j.ranks)))
	}
	return o.of(0)
}

// reductions returns the reduction of the inputs of the first ranks to a job.
func (o *oracle[T]) reductions(j *job, ranks int) []T {
	a := o.answersTo(j)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reduced[ranks] == nil {
		all, xs := make([]T, len(a.inputs[0])), make([]T, ranks)
		for i := range all {
			all[i] = o.reduce(j.op, a.operands(i, xs))
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
