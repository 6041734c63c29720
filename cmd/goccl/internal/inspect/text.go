package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/flight"
)

// Write writes who is where, and where ranks first differ.
func (j *Records) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s, %d ranks; records from %s\n", j.Name, j.Size, strings.Join(j.Writers, ", "))
	for _, g := range j.Groups() {
		if g.Name != "" && !slices.ContainsFunc(g.Members, func(m Member) bool { return len(m.Calls) > 0 }) {
			continue // such as that of SplitLocal
		}
		fmt.Fprintf(&b, "\n%s\n", g.Title())
		for _, m := range g.Members {
			j.writeMember(&b, m)
		}
		if n := g.Size - len(g.Members); n > 0 {
			fmt.Fprintf(&b, "  %d of %d have no records\n", n, g.Size)
		}
		j.writeDifference(&b, g.Difference())
	}

	j.writeMessages(&b)
	for _, other := range j.Others {
		fmt.Fprintf(&b, "\nanother job has records there, and is not shown: %s\n", other)
	}
	for _, err := range j.Unread {
		fmt.Fprintf(&b, "\nnot read: %v\n", err)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (j *Records) writeMember(b *strings.Builder, m Member) {
	who := fmt.Sprintf("rank %d", m.Global)
	if m.Rank != m.Global {
		who += fmt.Sprintf(" (%d in the group)", m.Rank)
	}

	last := "no call"
	if n := len(m.Calls); n > 0 {
		c := m.Calls[n-1]
		last = j.aged(c.String(), c.State, c.Begun, c.Ended)
	}
	if m.Left {
		last += "; it has left the group"
	}
	fmt.Fprintf(b, "  %s: %s\n", who, last)
}

func (j *Records) writeDifference(b *strings.Builder, d *Difference) {
	if d == nil {
		b.WriteString("  no difference between these ranks\n")
		return
	}
	title, absent := "the first difference:", "had not come"
	if j.Running != nil {
		absent = "has not come yet"
	}
	if j.Running != nil && len(d.Calls) <= 1 {
		title = "not all ranks have come to"
	}
	fmt.Fprintf(b, "  %s call %d\n", title, d.Number)

	for _, v := range d.Calls {
		fmt.Fprintf(b, "    %s: %s\n", ranksText(v.Members), v.What)
	}
	if len(d.Absent) > 0 {
		fmt.Fprintf(b, "    %s: %s\n", ranksText(d.Absent), absent)
	}
}

// writeMessages writes the messages of each rank that have not ended, and the last one otherwise.
func (j *Records) writeMessages(b *strings.Builder) {
	title := "\nmessages\n"
	for _, r := range j.Ranks {
		for i, m := range r.Messages {
			open := m.State == flight.StateBegun || m.State == flight.StateStarting
			if open || i == len(r.Messages)-1 {
				fmt.Fprintf(b, "%s  rank %d: %s%s\n", title, r.Rank, j.aged(m.String(), m.State, m.Begun, m.Ended), j.inGroup(m.Group))
				title = ""
			}
		}
	}
}

// inGroup returns the group of a message as text, "" for the first group.
func (j *Records) inGroup(id string) string {
	for _, g := range j.Groups() {
		if g.ID == id && g.Name != "" {
			return ", in the " + g.Title()
		}
	}
	return ""
}
