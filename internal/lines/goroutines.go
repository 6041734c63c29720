package lines

import "context"

// Goroutines is the Rest of ranks that are goroutines of one process: each sleeps on
// a channel of its own.
type Goroutines []chan struct{}

// NewGoroutines returns the Rest of so many ranks.
func NewGoroutines(ranks int) Goroutines {
	g := make(Goroutines, ranks)
	for i := range g {
		g[i] = make(chan struct{}, 1)
	}
	return g
}

// Wake implements Rest.
func (g Goroutines) Wake(rank int) {
	select {
	case g[rank] <- struct{}{}:
	default:
	}
}

// Sleep implements Rest.
func (g Goroutines) Sleep(rank int, ctx context.Context) {
	if ctx == nil {
		<-g[rank]
		return
	}
	select {
	case <-g[rank]:
	case <-ctx.Done():
	}
}
