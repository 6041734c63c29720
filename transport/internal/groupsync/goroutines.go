package groupsync

import (
	"context"

	"github.com/goccl/goccl/internal/interleave"
)

// Goroutines is the Rest of ranks that are goroutines of one process. Each sleeper has its own
// channel.
type Goroutines []chan struct{}

// NewGoroutines returns the Rest of that many ranks.
func NewGoroutines(ranks int) Goroutines {
	g := make(Goroutines, 2*ranks)
	for i := range g {
		g[i] = make(chan struct{}, 1)
	}
	return g
}

// Wake implements Rest. (syncmodel: tokensStay)
func (g Goroutines) Wake(sleeper int) {
	interleave.Step()
	select {
	case g[sleeper] <- struct{}{}:
	default:
	}
}

// Sleep implements Rest.
func (g Goroutines) Sleep(sleeper int, ctx context.Context) (woken bool) {
	if ctx == nil {
		interleave.Receive(g[sleeper])
		return true
	}
	return interleave.First(g[sleeper], ctx.Done()) == 0
}

// IsAsleep implements Rest.
func (g Goroutines) IsAsleep(sleeper int) bool { return len(g[sleeper]) == 0 }
