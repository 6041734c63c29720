package ddp

// NoSync runs steps without communication, to accumulate gradients: Ready and Wait do nothing within f. The
// first step after it reduces what the program has accumulated. With FindUnused, and in the first step with
// StaticGraph, a parameter that was ready within f counts as ready in that step.
//
// NoSync returns f's error. After the end of the Reducer or of its group the error is ccl.ErrClosed, and f is not called.
func (r *Reducer[T]) NoSync(f func() error) error {
	if err := r.retain("NoSync"); err != nil {
		return err
	}
	defer r.comm.Release()
	defer r.setQuiet(r.setQuiet(true))
	return f()
}

func (r *Reducer[T]) setQuiet(quiet bool) (was bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, r.isQuiet = r.isQuiet, quiet
	return was
}
