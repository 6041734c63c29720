package shm

// JoinWith makes Join use another geometry until the returned function is called.
func JoinWith(g func(ranks int) Geometry) (restore func()) {
	old := geometryOf
	geometryOf = g
	return func() { geometryOf = old }
}
