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

// trace is a document of Chrome's trace format: a process for each rank, with a thread for each
// row.
type trace struct{ events []event }

// name names a row of a rank.
func (t *trace) name(rank, row int, name string) {
	t.events = append(t.events,
		event{Name: "process_name", Phase: "M", PID: rank, TID: row, Args: map[string]any{"name": fmt.Sprintf("rank %d", rank)}},
		event{Name: "thread_name", Phase: "M", PID: rank, TID: row, Args: map[string]any{"name": name}})
}

// add adds what a rank does for a while.
func (t *trace) add(rank, row int, name string, from, to time.Duration, args map[string]any) {
	length := micros(to - from)
	t.events = append(t.events, event{Name: name, Phase: "X", PID: rank, TID: row, TS: micros(from), Dur: &length, Args: args})
}

func (t *trace) write(w io.Writer, about map[string]string) error {
	text, err := json.MarshalIndent(map[string]any{
		"displayTimeUnit": "ns", "otherData": about, "traceEvents": append([]event{}, t.events...), // not null
	}, "", " ")
	if err == nil {
		_, err = w.Write(append(text, '\n'))
	}
	return err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Trace writes the calls in Chrome's trace format, with a row for each group and one for messages.
func Trace(w io.Writer, j *inspect.Records) error {
	all, _ := rows(j)
	var t trace
	var groups []string
	for _, r := range all {
		row := slices.Index(groups, r.group)
		if row < 0 {
			row = len(groups)
			groups = append(groups, r.group)
		}

		t.name(r.rank, row, r.group)
		for _, s := range r.spans {
			t.add(r.rank, row, s.name, s.from, s.to, map[string]any{"call": s.text, "state": s.state, "timed": s.timed})
		}
	}
	return t.write(w, map[string]string{
		"job":    j.Name,
		"legend": "a call whose argument timed is false has no times and is placed by its number, between calls of its rank that have",
	})
}

// StepTrace writes one step of all ranks in Chrome's trace format, with a row for the program and
// one for each group. The waiting and the rest of a call are events inside of its event.
func StepTrace(w io.Writer, j *inspect.Records) error {
	s, err := findStep(j)
	if err != nil {
		return err
	}
	var t trace
	for _, r := range s.ranks {
		t.name(r.rank, 0, "program")
		for _, p := range r.parts {
			t.add(r.rank, 0, p.label, p.from, p.to, nil)
		}

		for i, l := range r.lanes {
			t.name(r.rank, i+1, l.title)
			for _, c := range l.calls {
				t.add(r.rank, i+1, c.name, c.from, c.to, map[string]any{"call": c.text})
				if c.all > c.from {
					t.add(r.rank, i+1, "waits for the last rank", c.from, c.all, nil)
				}

				if c.to > c.all {
					t.add(r.rank, i+1, "transfer", c.all, c.to, nil)
				}
			}
		}
	}
	return t.write(w, map[string]string{"job": j.Name, "step": fmt.Sprint(s.number), "summary": s.summary()})
}
