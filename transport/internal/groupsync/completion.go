package groupsync

// Complete implements transport.Endpoint. (syncmodel: completionSync)
func (r *Member) Complete() error {
	r.Done(r.rank)
	return r.AwaitDone()
}

// Done marks a rank's body in the current call as over: this rank's own, or another rank's that
// this rank has run. (syncmodel: everyStoreWakes)
func (r *Member) Done(rank int) {
	r.group.states[rank].done.Store(r.call.seq)
	r.budgets.woke = r.group.wakeWaiters(rank)
}

// AwaitDone waits until the bodies of all ranks in the current call are over. After an error only
// Withdraw knows whether they will be: this rank is done already, and the last rank may yet be.
func (r *Member) AwaitDone() error {
	for rank, s := range r.group.states {
		if err := r.await(&s.done, r.call.seq, rank, forCompletion); err != nil {
			r.call.unended = uint32(r.call.seq)
			return err
		}
	}
	return nil
}

// AreAllDone reports whether the bodies of all ranks in the current call are over.
func (r *Member) AreAllDone() bool {
	for _, s := range r.group.states {
		if s.done.Load() < r.call.seq {
			return false
		}
	}
	return true
}
