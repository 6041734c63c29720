package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// benchTable prints results one by one, in a table for each section.
type benchTable struct {
	out      io.Writer
	bars     bars
	bar      *progressbar.ProgressBar
	document *measure.Document
	section  []measure.Result
}

// newBenchTable prints the head: machine, configuration and clock.
func newBenchTable(out io.Writer, bars bars, d *measure.Document) *benchTable {
	fmt.Fprintf(out, "machine        %v\n", d.Machine)
	if d.Machine.Load != "" {
		fmt.Fprintf(out, "load           %s in the minute before; other load affects all times\n", d.Machine.Load)
	}
	fmt.Fprintf(out, "configuration  %s (%s)\n", d.Config.File, d.Config.FoundBy)
	fmt.Fprintf(out, "clock          %d ns per reading, included once in every time\n", d.Machine.ClockNS)
	return &benchTable{out: out, bars: bars, document: d}
}

// measureAll measures the cases one after the other, and adds each result to the document and
// prints it, never while a call is timed.
func (t *benchTable) measureAll(cases []measure.Case, one func(measure.Case) (measure.Result, error)) error {
	t.bar = t.bars.start(len(cases))
	defer t.end()
	for _, c := range cases {
		t.bar.Describe(fmt.Sprintf("%s %v, %d ranks", c.Collective, ccl.ByteSize(c.Bytes), c.Ranks))
		r, err := one(c)
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
		_ = t.bar.Add(1) // errors of the progress bar do not matter
	}
	return nil
}

// benchColumns are the columns of the table, with their units.
var benchColumns = []struct {
	name, unit string
	width      int
}{
	{"size", "", 8}, {"count", "", 9}, {"type", "", 10}, {"op", "", 7}, {"entry", "", -22},
	{"p50", "us", 8}, {"p90", "us", 8}, {"p99", "us", 8}, {"min", "us", 8}, {"whole", "us", 8}, {"cpu", "cores", 5}, {"algbw", "GB/s", 7}, {"busbw", "GB/s", 7},
	{"own copy", "us", 8}, {"peer copy", "us", 9}, {"floor", "us", 8}, {"x own", "", 6}, {"x peer", "", 6}, {"x floor", "", 7}, {"errors", "", 6},
}

// add prints the rows of a case.
func (t *benchTable) add(r measure.Result) error {
	var b strings.Builder
	if len(t.section) == 0 || t.section[0].Section() != r.Section() {
		b.WriteString(t.yardsticks())
		t.section = nil
		b.WriteString("\n" + r.Heading())
		if r.Config != "" && r.Config != t.document.Config.File {
			b.WriteString(", " + r.Config)
		}
		b.WriteString("\n")
		var names, units []string
		for _, column := range benchColumns {
			names, units = append(names, column.name), append(units, column.unit)
		}
		b.WriteString(benchLine(names) + benchLine(units))
	}
	t.section = append(t.section, r)
	for _, row := range r.Algorithms() {
		b.WriteString(benchLine(benchCells(r, row)))
	}
	_ = t.bar.Clear()
	_, err := io.WriteString(t.out, b.String())
	return err
}

// end prints the yardsticks of the last section.
func (t *benchTable) end() {
	_ = t.bar.Clear()
	fmt.Fprint(t.out, t.yardsticks())
	t.section = nil
}

func benchLine(cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(" ")
		}
		if i < len(benchColumns) {
			fmt.Fprintf(&b, "%*s", benchColumns[i].width, cell)
		} else {
			b.WriteString(cell)
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// benchCells returns the cells of an algorithm's row, or the reason instead of the
// numbers if it was rejected.
func benchCells(r measure.Result, row measure.Row) []string {
	size, count := "-", "-"
	if r.Bytes > 0 {
		size, count = ccl.ByteSize(r.Bytes).String(), strconv.Itoa(r.Count())
	}
	cells := []string{size, count, orDash(r.DType), orDash(r.Op), entryText(row)}
	if row.Refused != "" {
		return append(cells, "refused: "+withoutShape(r.Collective, row.Refused))
	}
	return append(cells, measure.Digits(row.P50, 4), measure.Digits(row.P90, 4), measure.Digits(row.P99, 4), measure.Digits(row.Min, 4),
		measure.Digits(row.Whole, 4), measure.Multiple(row.CPU), measure.Digits(row.AlgBW, 3), measure.Digits(row.BusBW, 3),
		measure.Digits(r.Yardstick(measure.OwnCopy).P50, 4), measure.Digits(r.Yardstick(measure.PeerCopy).P50, 4), measure.Digits(r.Floor().P50, 4),
		measure.Multiple(row.XOwnCopy), measure.Multiple(row.XPeerCopy), measure.Multiple(row.XFloor), strconv.Itoa(row.Errors))
}

// entryText returns the entry of a row, for auto with the chosen one.
func entryText(row measure.Row) string {
	if row.Ran != "" {
		row.Entry += " (" + row.Ran + ")"
	}
	return orDash(row.Name())
}

// yardsticks returns the section's yardsticks that do not depend on the length: if they
// vary, the machine does.
func (t *benchTable) yardsticks() string {
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
	return "in the same rounds: " + strings.Join(parts, "; ") + "\n"
}
