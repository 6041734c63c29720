package dist

// Bound returns how many goroutines have a rank of their own.
func Bound() int { return bound.Len() }

// Labels returns how many profiler labels of workers are remembered.
func Labels() int {
	spawned.Lock()
	defer spawned.Unlock()
	return len(spawned.labels)
}

// Attempts returns how many attempts the job of the process without Spawn keeps.
func Attempts() int {
	solo.mu.Lock()
	defer solo.mu.Unlock()
	return len(solo.attempts)
}
