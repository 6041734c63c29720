package ddp

// NoSync runs steps without communication, to accumulate gradients: Ready and Wait do nothing within f. The
// first step after it reduces what the program has accumulated. With FindUnused, and in the first step with
// StaticGraph, a parameter that was ready within f counts as ready in that step.
func (r *Reducer[T]) NoSync(f func() error) error {
	defer r.setQuiet(r.setQuiet(true))
	return f()
}

func (r *Reducer[T]) setQuiet(quiet bool) (was bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, r.isQuiet = r.isQuiet, quiet
	return was
}
