package ddp

// noSync is the state of NoSync.
type noSync struct {
	isOn        bool
	accumulated []bool // by parameter: ready within NoSync since the last step
}

// NoSync runs steps without communication, to accumulate gradients: Ready and Wait do nothing
// within f. The first step after it reduces what the program has accumulated. A parameter that was
// ready within f, once or often, counts as ready in that step.
//
// NoSync returns f's error. In these cases it returns another one, and does not call f:
//   - in a step that has begun, whose gradients f would overwrite: *ccl.InvalidArgumentError
//   - after the end of the Reducer or of its group: ccl.ErrClosed
func (r *Reducer) NoSync(f func() error) error {
	if err := r.retain("NoSync"); err != nil {
		return err
	}
	defer r.comm.Release()
	wasOn, err := r.beginNoSync()
	if err != nil {
		return err
	}
	defer r.endNoSync(wasOn)
	return f()
}

func (r *Reducer) beginNoSync() (wasOn bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.errLogical("NoSync", "a shard may have several batches, and Ready is called with the sum of their gradients"); err != nil {
		return false, err
	}
	if err := r.checkBetweenSteps("NoSync"); err != nil {
		return false, err
	}
	wasOn, r.noSync.isOn = r.noSync.isOn, true
	return wasOn, nil
}

func (r *Reducer) endNoSync(wasOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noSync.isOn = wasOn
}

// putAccumulated puts the gradients of parameters in their buckets that were ready within NoSync,
// and not in the step.
func (r *Reducer) putAccumulated() {
	for i, accumulated := range r.noSync.accumulated {
		switch {
		case !accumulated:
		case r.unused.outside[i]:
			r.step.noteMistake(r.outsideStep(i))
		case !r.step.ready[i]:
			r.putGradient(i)
		}
	}
}
