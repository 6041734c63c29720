package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/benchmarks/peers/programs/internal/program"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

type steps struct {
	rank, ranks int
	reducer     *ddp.Reducer
	gradients   [][]float32
}

// newSteps makes the parameters and their Reducer. It is collective.
func (a arguments) newSteps(rank int) (*steps, error) {
	s := &steps{rank: rank, ranks: a.Ranks}
	var parameters []ddp.Parameter
	for i, n := range a.elements {
		var gradient []float32
		if a.Form == "copies" {
			gradient = make([]float32, n)
		}
		parameters = append(parameters, ddp.Param(fmt.Sprint(i), make([]float32, n), gradient))
	}

	group, err := dist.Default()
	if err != nil {
		return nil, err
	}
	if s.reducer, err = ddp.New(context.Background(), group, parameters, ddp.Options{}); err != nil {
		return nil, err
	}
	for i := range parameters {
		s.gradients = append(s.gradients, ddp.Grad[float32](s.reducer, i))
	}
	return s, nil
}

// value is element j of a gradient of a rank.
func value(rank, gradient, j, round int) float32 { return float32(rank + (gradient+j+round)&7) }

// backward writes all gradients.
func (s *steps) backward(round int) error {
	for i, g := range slices.Backward(s.gradients) {
		for j := range g {
			g[j] = value(s.rank, i, j, round)
		}
		s.reducer.Ready(i)
	}
	return nil
}

// round makes a step without communication and one with it.
func (s *steps) round(round int) (quiet, whole time.Duration, err error) {
	quiet, err = program.TimeTogether(func() error {
		return s.reducer.NoSync(func() error { return s.backward(round + 1) })
	})
	if err != nil {
		return 0, 0, err
	}
	whole, err = program.TimeTogether(func() error {
		return errors.Join(s.backward(round), s.reducer.Wait(context.Background()))
	})
	return quiet, whole, err
}

// countErrors returns how many elements differ from the mean of all ranks' gradients.
func (s *steps) countErrors(round int) (n int64) {
	for i, g := range s.gradients {
		for j, got := range g {
			if got != value(0, i, j, round)+float32(s.ranks-1)/2 {
				n++
			}
		}
	}
	return n
}
