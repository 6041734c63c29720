package ccl

import (
	"io"
	"os"
	"slices"

	"github.com/goccl/goccl/internal/flight"
	"github.com/goccl/goccl/internal/metrics"
)

// WriteMetrics writes the metrics of all ranks of this process in the text format of Prometheus:
// what they have counted in the job of this communicator (see WithMetrics), and their steps (see
// Mark).
//
// For a closed or nil communicator it writes nothing. It returns an error of w, or that the memory
// of the counters has vanished. Any goroutine may call it at any time.
func (c *Communicator) WriteMetrics(w io.Writer) error {
	if c == nil || c.engine.records.recorder == nil || !c.engine.holds.life.HoldOpen() {
		return nil
	}
	ranks, err := c.engine.records.ofProcess()
	_ = c.engine.holds.drop() // Close has returned already
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // or none
	return metrics.Write(w, &metrics.Job{Host: host, Restarts: -1, Ranks: ranks})
}

// ofProcess returns the records of the ranks of this process.
func (l *records) ofProcess() (ranks []flight.Rank, err error) {
	err = l.vanishing(func() { ranks, _ = flight.ReadAll(l.recorder.size, l.recorder.memory.Part) })
	isElsewhere := func(r flight.Rank) bool { return r.PID != os.Getpid() }
	return slices.DeleteFunc(ranks, isElsewhere), err
}
