package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// benchTable prints results one by one, in a table for each section.
type benchTable struct {
	out      io.Writer
	markdown bool
	stderr   stderr
	progress *progress
	document *measure.Document
	section  []measure.Result
	columns  []benchColumn // of the section
}

// newBenchTable prints the head: machine, configuration and clock.
func newBenchTable(out io.Writer, stderr stderr, d *measure.Document, markdown bool) *benchTable {
	head := [][2]string{{"machine", d.Machine.String()}}
	if d.Machine.Load != "" {
		head = append(head, [2]string{"load", d.Machine.Load + " in the minute before; other load affects all times"})
	}
	head = append(head, [2]string{"configuration", fmt.Sprintf("%s (%s)", d.Config.File, d.Config.FoundBy)},
		[2]string{"clock", fmt.Sprintf("%d ns per reading, included once in every time", d.Machine.ClockNS)})

	for _, line := range head {
		if markdown {
			fmt.Fprintf(out, "- %s: %s\n", line[0], line[1])
		} else {
			fmt.Fprintf(out, "%-14s %s\n", line[0], line[1])
		}
	}
	return &benchTable{out: out, markdown: markdown, stderr: stderr, document: d}
}

// measureAll measures the cases one after the other, and adds each result to the document and
// prints it, never while a call is timed.
func (t *benchTable) measureAll(cases []measure.Case, measureCase func(measure.Case) (measure.Result, error)) error {
	t.progress = t.stderr.start(len(cases))
	defer t.end()
	for _, c := range cases {
		t.progress.show(fmt.Sprintf("%s %v, %d ranks", c.Collective, ccl.ByteSize(c.Bytes), c.Ranks))
		r, err := measureCase(c)
		if err == nil {
			t.document.Results = append(t.document.Results, r)
			err = t.add(r)
		}

		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted")
		}
		if err != nil {
			return err
		}
		t.progress.done++
	}
	return nil
}

// benchColumn is a column of the table. It has no unit if it is a ratio.
type benchColumn struct {
	name, unit string
	width      int                     // negative: left-aligned
	in         func(measure.Case) bool // whether the section of a case has it; nil: every one
	cell       func(measure.Result, measure.Row) string
}

// entryColumn is the index of the column whose width depends on its entries.
const entryColumn = 1

// benchColumns fit into 120 characters. What is alike in all rows of a section is in its heading
// instead.
var benchColumns = []benchColumn{
	{"size", "", 6, hasSizes, func(r measure.Result, _ measure.Row) string { return ccl.ByteSize(r.Bytes).String() }},
	{"entry", "", -5, nil, func(_ measure.Result, row measure.Row) string { return entryText(row) }},
	{"p50", "us", 6, nil, func(_ measure.Result, row measure.Row) string { return measure.Digits(row.P50, 4) }},
	{"p90", "us", 6, nil, func(_ measure.Result, row measure.Row) string { return measure.Digits(row.P90, 4) }},
	{"p99", "us", 6, nil, func(_ measure.Result, row measure.Row) string { return measure.Digits(row.P99, 4) }},
	{"min", "us", 6, nil, func(_ measure.Result, row measure.Row) string { return measure.Digits(row.Min, 4) }},
	{"whole", "us", 6, nil, func(_ measure.Result, row measure.Row) string { return measure.Digits(row.Whole, 4) }},
	{"cpu", "cores", 5, nil, func(_ measure.Result, row measure.Row) string { return measure.Multiple(row.CPU) }},
	{"busbw", "GB/s", 6, hasSizes, func(_ measure.Result, row measure.Row) string { return measure.Digits(row.BusBW, 3) }},
	{"backward", "us", 8, isWorkload, func(r measure.Result, _ measure.Row) string {
		return measure.Digits(r.Yardstick(measure.Backward).P50, 4)
	}},
	{"added", "us", 6, isWorkload, func(_ measure.Result, row measure.Row) string { return measure.Digits(row.Added, 4) }},
	{"hidden", "", 6, isWorkload, func(_ measure.Result, row measure.Row) string { return measure.Multiple(row.Hidden) }},
	{"x at end", "", 8, isWorkload, func(_ measure.Result, row measure.Row) string { return measure.Multiple(row.XAtEnd) }},
	{"own", "us", 6, hasSizes, func(r measure.Result, _ measure.Row) string {
		return measure.Digits(r.Yardstick(measure.OwnCopy).P50, 4)
	}},
	{"peer", "us", 6, hasSizes, func(r measure.Result, _ measure.Row) string {
		return measure.Digits(r.Yardstick(measure.PeerCopy).P50, 4)
	}},
	{"floor", "us", 6, measure.Case.HasFloor, func(r measure.Result, _ measure.Row) string { return measure.Digits(r.Floor().P50, 4) }},
	{"x own", "", 5, hasSizes, func(_ measure.Result, row measure.Row) string { return measure.Multiple(row.XOwnCopy) }},
	{"x peer", "", 6, hasSizes, func(_ measure.Result, row measure.Row) string { return measure.Multiple(row.XPeerCopy) }},
	{"x floor", "", 7, measure.Case.HasFloor, func(_ measure.Result, row measure.Row) string { return measure.Multiple(row.XFloor) }},
}

func hasLength(c measure.Case) bool { return c.Bytes > 0 }

func isWorkload(c measure.Case) bool { return measure.IsWorkload(c.Collective) }

func hasSizes(c measure.Case) bool { return hasLength(c) && !isWorkload(c) }

// columnsOf returns the columns of the section that begins with a result.
func columnsOf(r measure.Result) (all []benchColumn) {
	for i, column := range benchColumns {
		if column.in != nil && !column.in(r.Case) {
			continue
		}
		if i == entryColumn {
			for _, row := range r.Algorithms() {
				width := len(entryText(row))
				if row.Entry == measure.Auto || row.Entry == measure.AllEntries {
					width = max(width, len("auto (small_ring)")) // other sizes may have other entries
				}
				column.width = min(column.width, -width)
			}
		}
		all = append(all, column)
	}
	return all
}

// add prints the rows of a case.
func (t *benchTable) add(r measure.Result) error {
	var b strings.Builder
	if len(t.section) == 0 || t.section[0].Section() != r.Section() {
		b.WriteString(t.closing())
		t.section, t.columns = nil, columnsOf(r)
		t.heading(&b, t.document.Heading(r))
	}

	t.section = append(t.section, r)
	for _, row := range r.Algorithms() {
		t.row(&b, r, row)
	}
	t.progress.clear()
	_, err := io.WriteString(t.out, b.String())
	return err
}

// heading writes the heading of a section, and of its columns.
func (t *benchTable) heading(b *strings.Builder, title string) {
	if !t.markdown {
		b.WriteString("\n" + title + "\n")
		t.line(b, func(c benchColumn) string { return c.name }, "")
		t.line(b, func(c benchColumn) string { return c.unit }, "")
		return
	}

	fmt.Fprintf(b, "\n### %s\n\n", title)
	t.line(b, func(c benchColumn) string {
		if c.unit == "" {
			return c.name
		}
		return fmt.Sprintf("%s (%s)", c.name, c.unit)
	}, "")

	for _, c := range t.columns {
		if c.width < 0 {
			b.WriteString("|---")
		} else {
			b.WriteString("|---:")
		}
	}
	b.WriteString("|\n")
}

// row writes the row of an algorithm, with the reason instead of the numbers if it was not
// measured.
func (t *benchTable) row(b *strings.Builder, r measure.Result, row measure.Row) {
	note := ""
	switch {
	case row.Refused != "":
		note = "refused: " + withoutShape(r.Collective, row.Refused)
	case row.Failed != "":
		note = "failed: " + row.Failed
	case row.Errors > 0:
		note = fmt.Sprintf("%d wrong elements", row.Errors)
	}

	unmeasured := row.Refused != "" || row.Failed != ""
	t.line(b, func(c benchColumn) string {
		if unmeasured && c.name != "size" && c.name != "entry" {
			return ""
		}
		return c.cell(r, row)
	}, note)
}

// line writes a line of cells and a note behind them; in Markdown, where all lines have the same
// cells, behind the entry.
func (t *benchTable) line(b *strings.Builder, cell func(benchColumn) string, note string) {
	var cells []string
	if t.markdown {
		for _, c := range t.columns {
			text := cell(c)
			if c.name == benchColumns[entryColumn].name && note != "" {
				text += ": " + note
			}
			cells = append(cells, text)
		}
		b.WriteString(markdownRow(cells))
		return
	}

	for _, c := range t.columns {
		if text := cell(c); text != "" || note == "" {
			cells = append(cells, fmt.Sprintf("%*s", c.width, text))
		}
	}
	if note != "" {
		cells = append(cells, note)
	}
	b.WriteString(strings.TrimRight(strings.Join(cells, " "), " ") + "\n")
}

// end prints the line below the last section.
func (t *benchTable) end() {
	t.progress.clear()
	fmt.Fprint(t.out, t.closing())
	t.section = nil
}

// entryText returns the entry of a row, for auto with the chosen one.
func entryText(row measure.Row) string {
	if row.Ran != "" {
		row.Entry += " (" + row.Ran + ")"
	}
	return orDash(row.Name())
}

// closing returns the line below a section: whether its results are right, what the bandwidths are
// to each other, and the yardsticks that do not depend on the length. If these vary, the machine
// does.
func (t *benchTable) closing() string {
	about, verified, wrongElements := "", false, 0
	for _, r := range t.section {
		for _, row := range r.Algorithms() {
			verified = verified || r.Bytes > 0 && row.Calls > 0
			wrongElements += row.Errors
		}
	}

	switch {
	case wrongElements > 0:
		about = fmt.Sprintf("%d elements are wrong; ", wrongElements)
	case verified:
		about = "all elements are right; "
	}
	if verified && t.section[0].BusFactor() != 1 {
		about += fmt.Sprintf("busbw is %.3g algbw; ", t.section[0].BusFactor())
	}

	var parts []string
	for _, y := range []struct{ name, words string }{
		{measure.Barrier, "barrier"}, {measure.CoreToCore, "core to core, one way"},
	} {
		var all []float64
		for _, r := range t.section {
			if row := r.Yardstick(y.name); row.Calls > 0 {
				all = append(all, row.P50)
			}
		}

		if n := len(all); n > 0 {
			slices.Sort(all)
			parts = append(parts, fmt.Sprintf("%s %s us (%s to %s)", y.words, measure.Digits(all[n/2], 3), measure.Digits(all[0], 3), measure.Digits(all[n-1], 3)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	if t.markdown {
		about = "\n" + about // a paragraph of its own
	}
	return about + "in the same rounds: " + strings.Join(parts, "; ") + "\n"
}
