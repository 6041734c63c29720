package ddp

// NoSync runs steps without communication, to accumulate gradients: Ready and Wait do nothing
// within f. The first step after it reduces what the program has accumulated. A parameter that was
// ready within f, once or often, counts as ready in that step.
//
// NoSync returns f's error. In these cases it returns another one, and does not call f:
//   - in a step that has begun, whose gradients f would overwrite: *ccl.InvalidArgumentError
//   - after the end of the Reducer or of its group: ccl.ErrClosed
func (r *Reducer[T]) NoSync(f func() error) error {
	if err := r.retain("NoSync"); err != nil {
		return err
	}
	defer r.comm.Release()
	wasQuiet, err := r.beginNoSync()
	if err != nil {
		return err
	}
	defer r.endNoSync(wasQuiet)
	return f()
}

func (r *Reducer[T]) beginNoSync() (wasQuiet bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkBetweenSteps("NoSync"); err != nil {
		return false, err
	}
	wasQuiet, r.isQuiet = r.isQuiet, true
	return wasQuiet, nil
}

func (r *Reducer[T]) endNoSync(wasQuiet bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isQuiet = wasQuiet
}

// putAccumulated puts the gradients of parameters in their buckets that were ready within NoSync,
// and not in the step.
func (r *Reducer[T]) putAccumulated() {
	for i, accumulated := range r.accumulated {
		switch {
		case !accumulated:
		case r.unused.outside[i]:
			r.step.noteMistake("parameter %q %s", r.params[i].Name, outsideStep)
		case !r.step.ready[i]:
			r.putGradient(i)
		}
	}
}
