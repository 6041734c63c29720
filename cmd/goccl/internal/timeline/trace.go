package timeline

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
)

// event is one event of Chrome's trace format.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	PID   int            `json:"pid"` // the rank
	TID   int            `json:"tid"` // its row
	TS    float64        `json:"ts"`  // microseconds
	Dur   *float64       `json:"dur,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Trace writes the calls in Chrome's trace format: a process for each rank, a thread for each group
// and one for messages.
func Trace(w io.Writer, j *inspect.Records) error {
	all, _ := rows(j)
	events := []event{}
	var groups []string
	for _, r := range all {
		thread := slices.Index(groups, r.group)
		if thread < 0 {
			thread = len(groups)
			groups = append(groups, r.group)
		}
		events = append(events,
			event{Name: "process_name", Phase: "M", PID: r.rank, TID: thread, Args: map[string]any{"name": fmt.Sprintf("rank %d", r.rank)}},
			event{Name: "thread_name", Phase: "M", PID: r.rank, TID: thread, Args: map[string]any{"name": r.group}})

		for _, s := range r.spans {
			length := micros(s.to - s.from)
			events = append(events, event{
				Name: s.name, Phase: "X", PID: r.rank, TID: thread, TS: micros(s.from), Dur: &length,
				Args: map[string]any{"call": s.text, "state": s.state, "timed": s.timed},
			})
		}
	}
	return writeTrace(w, events, map[string]string{
		"job":    j.Name,
		"legend": "a call whose argument timed is false has no times and is placed by its number, between calls of its rank that have",
	})
}

func writeTrace(w io.Writer, events []event, other map[string]string) error {
	text, err := json.MarshalIndent(map[string]any{
		"displayTimeUnit": "ns", "otherData": other, "traceEvents": events,
	}, "", " ")
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return err
}
