package ccl

// LastCall is Communicator.lastCall for tests outside of the package.
func LastCall(c *Communicator, rank int) string { return c.lastCall(rank) }
