package ccl

// LastCallOf is records.lastCall for tests outside of the package.
func LastCallOf(c *Communicator, rank int) (LastCall, bool) { return c.engine.records.lastCall(rank) }

// IsAwaited is Work.isAwaited for tests outside of the package.
func IsAwaited(w *Work) bool { return w.isAwaited() }

// WaitingOf returns how many goroutines wait for asynchronous calls of c.
func WaitingOf(c *Communicator) int64 { return c.engine.waiting.Load() }
