package ccl

// LastCallOf is Communicator.lastCall for tests outside of the package.
func LastCallOf(c *Communicator, rank int) (LastCall, bool) { return c.lastCall(rank) }
