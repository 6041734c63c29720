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
	j, err := c.measuredJob()
	if err != nil {
		return err
	}
	return metrics.Write(w, j)
}

// Metrics returns what WriteMetrics writes: values by metric and labels, such as
// goccl_calls_total{rank="0",group="default",collective="barrier"}.
func (c *Communicator) Metrics() map[string]float64 {
	all := map[string]float64{}
	j, _ := c.measuredJob() // without ranks, if their memory has vanished
	for _, m := range metrics.Metrics {
		for labels, value := range m.Samples(j) {
			all[m.Name+labels] = value
		}
	}
	return all
}

// measuredJob returns what is known of the ranks of this process.
func (c *Communicator) measuredJob() (*metrics.Job, error) {
	j := &metrics.Job{Restarts: -1}
	if c == nil || c.engine.records.recorder == nil || !c.engine.holds.life.HoldOpen() {
		return j, nil
	}
	defer c.engine.holds.drop() //nolint:errcheck // Close has returned already
	j.Host, _ = os.Hostname()   // or none
	var err error
	j.Ranks, err = c.engine.records.ofProcess()
	return j, err
}

// ofProcess returns the records of the ranks of this process.
func (l *records) ofProcess() (ranks []flight.Rank, err error) {
	err = l.vanishing(func() { ranks, _ = flight.ReadAll(l.recorder.size, l.recorder.memory.Part) })
	isElsewhere := func(r flight.Rank) bool { return r.PID != os.Getpid() }
	return slices.DeleteFunc(ranks, isElsewhere), err
}
