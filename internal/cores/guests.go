package cores

import (
	"context"
	"sync"
	"sync/atomic"
)

// guests counts the jobs that have no cores of their own and may use those of this job.
type guests struct {
	n       atomic.Int32
	changed chan struct{} // with room for one
}

func (g *guests) add(n int32) {
	g.n.Add(n)
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// Visit tells the jobs that hold cores which this process may use that it shares them, now or
// later, until the returned function is called.
func Visit() (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	usable, err := Usable()
	if err != nil {
		return cancel
	}

	var visits sync.WaitGroup
	for _, c := range look("", usable).Free {
		visits.Go(func() { c.visit(ctx) })
	}
	return func() {
		cancel()
		visits.Wait()
	}
}
