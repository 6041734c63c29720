package tool

import (
	"fmt"
	"io"
	"strings"

	"github.com/goccl/goccl/cmd/goccl/internal/exporter"
	"github.com/goccl/goccl/internal/launcher"
)

// showMetrics shows the metrics of a job as --metrics says, until stop is called. The ranks count
// for them.
func (c *runCommand) showMetrics(job *launcher.Spec, log *runLog) (stop func(), err error) {
	if c.Metrics == "" {
		return func() {}, nil
	}
	monitor := new(launcher.Monitor)
	warn := func(err error) {
		log.warn(launcher.Warning{Rank: -1, Text: fmt.Sprintf("--metrics %s: %v", c.Metrics, err)})
	}
	e, err := exporter.Start(c.Metrics, func(w io.Writer, run string) error { return monitor.WriteMetrics(w, run, c.NodeRank) }, warn)
	if err != nil {
		return nil, fmt.Errorf("--metrics %s: %w", c.Metrics, err)
	}

	if strings.HasSuffix(c.Metrics, ":0") {
		log.note(fmt.Sprintf("metrics at http://%s/metrics", e.Address))
	}
	job.Memory.Monitor = monitor
	return func() {
		if err := e.Close(); err != nil {
			warn(err)
		}
	}, nil
}
