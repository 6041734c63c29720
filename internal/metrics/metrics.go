// Package metrics writes what the ranks of a job have counted in the text format of Prometheus.
//
// # Model
//
// A [Job] is what one process knows of the job's ranks: a launcher those of its node, a program its
// own. Every [Metric] makes samples of it, whose names and labels follow the conventions of
// Prometheus. Samples that have all labels in common, such as those of two groups of one name, are
// summed up: the format allows each only once.
//
// Counters begin at zero when a rank starts or initializes a group anew, which Prometheus takes for
// a reset.
package metrics

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/flight"
)

// ContentType is that of what Write writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Job is what is known of the ranks of a job.
type Job struct {
	Run      string // tells the job from others in the same place, or ""
	Node     string // the number of the node, or "" if it is not known
	Host     string
	Restarts int // -1 if they are not known
	Waiting  flight.Waiting
	Ranks    []flight.Rank
}

// Metric is a metric of a job.
type Metric struct {
	Name, Type, Help string
	// collect calls add with the value of each sample, and with its labels: names and values.
	collect func(j *Job, add adder)
}

type adder func(value float64, labels ...string)

// Metrics are all metrics, in the order in which they are written.
var Metrics = []Metric{
	ofCounters("goccl_calls_total", "Calls that have ended, those that have failed too.", "collective", ended),
	ofCounters("goccl_failures_total", "Calls that have failed.", "collective", failures),
	ofCounters("goccl_call_bytes_total", "Bytes of the inputs or outputs of calls, whichever are more.", "collective", transferred),
	ofCounters("goccl_call_seconds_total", "Time in calls.", "collective",
		func(c flight.Counter) float64 { return c.Duration.Seconds() }),
	ofCounters("goccl_waiting_seconds_total", "Time in calls in which the rank waited for others.", "collective",
		func(c flight.Counter) float64 { return c.Waiting.Seconds() }),
	ofCounters("goccl_messages_total", "Messages that have ended, those that have failed too.", "direction", ended),
	ofCounters("goccl_message_failures_total", "Messages that have failed.", "direction", failures),
	ofCounters("goccl_message_bytes_total", "Bytes of messages that have not failed.", "direction", transferred),
	{"goccl_waiting_caused_ratio", "gauge", "Share of the time of the other ranks that they waited for this rank, on average, in the last minute.", func(j *Job, add adder) {
		for rank, l := range j.Waiting.Of {
			add(l.Ratio, "rank", strconv.Itoa(rank))
		}
	}},
	{"goccl_step", "gauge", "Number of the step of the training.", func(j *Job, add adder) {
		eachStep(j, func(s step, labels ...string) { add(float64(s.number), labels...) })
	}},
	{"goccl_step_seconds", "gauge", "Time that the last whole step took, by what the program did.", func(j *Job, add adder) {
		eachStep(j, func(s step, labels ...string) {
			for part, took := range s.parts {
				add(took.Seconds(), append(slices.Clip(labels), "part", part)...)
			}
		})
	}},
	{"goccl_restarts_total", "counter", "Restarts of all ranks after a failure.", func(j *Job, add adder) {
		if j.Restarts >= 0 {
			add(float64(j.Restarts))
		}
	}},
	{"goccl_rank_info", "gauge", "1 for each rank whose records are read, with its process.", func(j *Job, add adder) {
		for _, r := range j.Ranks {
			add(1, "rank", strconv.Itoa(r.Rank), "pid", strconv.Itoa(r.PID), "host", j.Host)
		}
	}},
}

func ended(c flight.Counter) float64       { return float64(c.Calls) }
func failures(c flight.Counter) float64    { return float64(c.Failures) }
func transferred(c flight.Counter) float64 { return float64(c.Bytes) }

// ofCounters returns a counter by rank, group and label: of calls, by their collective, or of
// messages, by their direction.
func ofCounters(name, help, label string, value func(flight.Counter) float64) Metric {
	return Metric{name, "counter", help, func(j *Job, add adder) {
		for _, r := range j.Ranks {
			closed := flight.GroupCalls{Name: closedGroups, Counters: r.Counters}
			for _, g := range append(slices.Clip(r.Groups), closed) {
				for _, c := range g.Counters {
					if isMessage := c.Collective == "send" || c.Collective == "recv"; isMessage == (label == "direction") {
						add(value(c), "rank", strconv.Itoa(r.Rank), "group", groupLabel(g.Name), label, c.Collective)
					}
				}
			}
		}
	}}
}

// closedGroups is the group of what calls of groups have cost whose records others have taken.
const closedGroups = "closed"

// groupLabel returns the name of a group, without what tells it from others that are made in the
// same way, since each would be another series, and without quotes, which a query would have to
// escape. The first group has none, and an empty label is none.
func groupLabel(name string) string {
	return cmp.Or(strings.ReplaceAll(flight.Series(name), `"`, ""), "default")
}

// Samples returns the samples of the metric by their labels, such as {rank="0"}.
func (m *Metric) Samples(j *Job) map[string]float64 {
	all := map[string]float64{}
	m.collect(j, func(value float64, labels ...string) {
		all[formatLabels(append(labels, "node", j.Node, "run", j.Run))] += value
	})
	return all
}

// formatLabels returns labels in the format of Prometheus, without those that have no value.
func formatLabels(labels []string) string {
	var all []string
	for pair := range slices.Chunk(labels, 2) {
		if value := strings.ToValidUTF8(pair[1], "\ufffd"); value != "" {
			all = append(all, pair[0]+`="`+escaper.Replace(value)+`"`)
		}
	}
	if all == nil {
		return ""
	}
	return "{" + strings.Join(all, ",") + "}"
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Write writes all metrics of the job that have samples.
func Write(w io.Writer, j *Job) error {
	b := bufio.NewWriter(w) // it keeps the first error
	for _, m := range Metrics {
		samples := m.Samples(j)
		if len(samples) == 0 {
			continue
		}
		fmt.Fprintf(b, "# HELP %[1]s %[2]s\n# TYPE %[1]s %[3]s\n", m.Name, m.Help, m.Type)
		for _, labels := range slices.Sorted(maps.Keys(samples)) {
			fmt.Fprintf(b, "%s%s %s\n", m.Name, labels, strconv.FormatFloat(samples[labels], 'g', -1, 64))
		}
	}
	return b.Flush()
}
