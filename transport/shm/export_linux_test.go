package shm

// JoinWith makes Join use another geometry until the function that it returns is
// called.
func JoinWith(g func(ranks int) Geometry) (restore func()) {
	old := geometryOf
	geometryOf = g
	return func() { geometryOf = old }
}
