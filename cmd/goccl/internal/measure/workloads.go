package measure

import (
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/workload"
)

// DefaultBackward is Plan.Compute for workloads, if it is not set.
const DefaultBackward = 50 * time.Millisecond

// The rows of a workload: steps with a backward pass, and then steps without one.
const (
	Overlapped = "overlapped" // a Reducer of package ddp, with gradients as views of its buckets
	AtEnd      = "at_end"     // one all-reduce of all gradients after backward
	Views      = "views"      // a Reducer's communication, with gradients as views
	Copies     = "copies"     // the same, with gradients of the program's own, of which short ones are copied
)

// IsWorkload reports whether a collective's name is a workload's.
func IsWorkload(name string) bool { return slices.Contains(workload.Names(), name) }

// workload returns a case that is steps of training a network: all gradients are averaged in place.
func (c Case) workload(name string) Case {
	w, _ := workload.Named(name) // Validate has checked it
	c.Collective, c.DType, c.Op, c.InPlace = name, ccl.Float32.String(), ccl.Avg.String(), true
	c.Bytes = w.Elements() * c.elementSize()
	return c
}

// backward is what a rank does in a backward pass, beside the gradients.
type backward struct {
	time    time.Duration
	compute *computation // nil: the rank waits
}

// run runs backward through the layers, which is the same time in all passes. It calls ready with
// each parameter's number when its layer is done, the last parameter first.
func (b *backward) run(w *workload.Workload, ready func(parameter int)) {
	start := time.Now()
	all, done, parameter := float64(w.Operations()), int64(0), len(w.Parameters())
	for _, l := range slices.Backward(w.Layers) {
		done += l.Operations
		switch {
		case l.Operations == 0:
		case b.compute != nil:
			b.compute.run(float64(l.Operations) / all)
		default: // until a point in time, so that what a wait takes too long does not add up
			time.Sleep(time.Until(start.Add(time.Duration(float64(b.time) * float64(done) / all))))
		}
		for range l.Parameters {
			parameter--
			ready(parameter)
		}
	}
}

// training is one rank's part in a workload.
type training struct {
	*bench[float32]
	of         workload.Workload
	backward   backward
	parameters []workload.Parameter
}

// addWorkload adds the subjects of a case that is a workload: backward without communication and
// one all-reduce of all gradients as yardsticks, barrier and core to core, and its rows.
func addWorkload(b *bench[float32], _ []chosen) error {
	t := &training{bench: b}
	var err error
	if t.of, err = workload.Named(b.c.Collective); err != nil {
		return err
	}
	t.parameters, t.backward.time = t.of.Parameters(), b.c.Compute
	if !b.c.Wait {
		t.backward.compute = newComputation(b.c.Compute, 0, b.rank)
	}
	vector, err := ccl.Alloc[float32](background, b.comm, t.of.Elements())
	if _, refused := errors.AsType[*dist.AllocationFailedError](err); refused { // then Reducers have private memory as well
		vector, err = make([]float32, t.of.Elements()), nil
	}
	if err != nil {
		return err
	}

	whole := t.split(vector)
	views, viewed, err := t.newReducer(whole, nil)
	if err != nil {
		return err
	}
	copies, copied, err := t.newReducer(whole, t.split(make([]float32, len(vector))))
	b.close = func() error { return errors.Join(views.Close(), copies.Close()) }
	if err != nil {
		return errors.Join(err, views.Close())
	}

	reduce := func() error { return ccl.AllReduce(background, b.comm, vector, vector, b.op) }
	nothing := func(int) {}
	b.private = []buffers[float32]{{}}
	t.add(Yardstick, Floor, whole, reduce)
	t.add(Yardstick, Backward, nil, func() error { t.backward.run(&t.of, nothing); return nil })
	b.addSynchronisation()
	t.add(Library, Overlapped, viewed, func() error {
		t.backward.run(&t.of, views.Ready)
		return views.Wait(background)
	})

	t.add(Library, AtEnd, whole, func() error {
		t.backward.run(&t.of, nothing)
		return reduce()
	})
	t.add(Library, Views, viewed, func() error { return t.communicate(views) })
	t.add(Library, Copies, copied, func() error { return t.communicate(copies) })
	return nil
}

// split divides a vector of all gradients into those of the parameters.
func (t *training) split(vector []float32) (all [][]float32) {
	at := 0
	for _, p := range t.parameters {
		n := p.Elements()
		all = append(all, vector[at:at+n:at+n])
		at += n
	}
	return all
}

// newReducer returns a Reducer of parameters with these values, which no step reads, and its
// gradients. Without gradients they are views.
func (t *training) newReducer(values, gradients [][]float32) (*ddp.Reducer, [][]float32, error) {
	var parameters []ddp.Parameter
	for i, p := range t.parameters {
		var gradient []float32
		if gradients != nil {
			gradient = gradients[i]
		}
		parameters = append(parameters, ddp.Param(p.Name, values[i], gradient, p.Shape...))
	}

	group, err := dist.Default()
	if err != nil {
		return nil, nil, err
	}

	r, err := ddp.New(background, group, parameters, ddp.Options{})
	if err != nil {
		return nil, nil, err
	}
	gradients = nil
	for i := range parameters {
		gradients = append(gradients, ddp.Grad[float32](r, i))
	}
	return r, gradients, nil
}

// communicate makes a step without a backward pass.
func (t *training) communicate(r *ddp.Reducer) error {
	for i := len(t.parameters) - 1; i >= 0; i-- {
		r.Ready(i)
	}
	return r.Wait(background)
}

// add adds a subject. Before each step the gradients are rewritten; after it they are the mean over
// the ranks.
func (t *training) add(library, name string, gradients [][]float32, run func() error) {
	at := func(i int) int { return 37 * i } // gradients differ
	k := &subject[float32]{library: library, name: name, run: run, ranks: t.c.Ranks, parts: 1, buckets: t.private}
	if gradients != nil {
		k.show = func(phase int) {
			for i, g := range gradients {
				fill(g, t.inputs[t.rank], (phase+at(i))%period)
			}
		}

		k.countWrong = func(phase int) (n int) {
			for i, g := range gradients {
				n += differing(g, t.reduced[t.c.Ranks-1], phase+at(i))
			}
			return n
		}
	}
	t.subjects = append(t.subjects, k)
}

// ofSteps sets what follows from the other rows of a workload.
func ofSteps(r Result) {
	floor, alone := r.Floor(), r.Yardstick(Backward)
	var end *Row
	for i := range r.Rows {
		switch row := &r.Rows[i]; row.Entry {
		case Views, Copies:
			row.XFloor = ratio(row.P50, floor.P50)
		case AtEnd:
			end = row
			row.Added = row.P50 - alone.P50
		}
	}

	for i := range r.Rows {
		if row := &r.Rows[i]; row.Entry == Overlapped && end != nil {
			row.Added = row.P50 - alone.P50
			row.XAtEnd = ratio(row.P50, end.P50)
			if end.Added > 0 {
				row.Hidden = rounded(1 - row.Added/end.Added)
			}
		}
	}
}
