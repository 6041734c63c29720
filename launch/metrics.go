package launch

import (
	"io"

	"github.com/goccl/goccl/internal/launcher"
)

// Metrics shows what the ranks of a Job count, which names it as Job.Metrics. It shows nothing
// before the job, and the last counts after it. The zero value is ready; each job has its own.
type Metrics struct{ monitor launcher.Monitor }

// Write writes the metrics in the text format of Prometheus, as `goccl run --metrics` serves them.
// It returns an error of w. Any goroutine may call it at any time.
func (m *Metrics) Write(w io.Writer) error { return m.monitor.WriteMetrics(w, "", 0) }
