package timeline

import (
	"fmt"
	"io"

	"github.com/goccl/goccl/cmd/goccl/internal/inspect"
)

// StepTrace writes one step of all ranks in Chrome's trace format: a process for each rank, with a
// thread for its program and one for each group. The waiting and the rest of a call are events
// inside of its event.
func StepTrace(w io.Writer, j *inspect.Records) error {
	s, err := findStep(j)
	if err != nil {
		return err
	}

	events := []event{}
	for _, r := range s.ranks {
		named := func(thread int, name string) {
			events = append(events,
				event{Name: "process_name", Phase: "M", PID: r.rank, TID: thread, Args: map[string]any{"name": fmt.Sprintf("rank %d", r.rank)}},
				event{Name: "thread_name", Phase: "M", PID: r.rank, TID: thread, Args: map[string]any{"name": name}})
		}
		add := func(thread int, name string, p part, args map[string]any) {
			length := micros(p.to - p.from)
			events = append(events, event{Name: name, Phase: "X", PID: r.rank, TID: thread, TS: micros(p.from), Dur: &length, Args: args})
		}

		named(0, "program")
		for _, p := range r.parts {
			add(0, p.label, p, nil)
		}

		for i, l := range r.lanes {
			named(i+1, l.title)
			for _, c := range l.calls {
				add(i+1, c.name, part{from: c.from, to: c.to}, map[string]any{"call": c.text})
				if c.all > c.from {
					add(i+1, "waits for the last rank", part{from: c.from, to: c.all}, nil)
				}

				if c.to > c.all {
					add(i+1, "transfer", part{from: c.all, to: c.to}, nil)
				}
			}
		}
	}
	return writeTrace(w, events, map[string]string{"job": j.Name, "step": fmt.Sprint(s.number), "summary": s.summary()})
}
