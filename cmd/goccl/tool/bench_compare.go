package tool

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// noticeable is the smallest ratio that counts as a difference. Medians repeat within a
// few percent.
const noticeable = 1.1

// compareFiles prints the differences between two runs.
func compareFiles(stdout io.Writer, before, after string) error {
	a, err := measure.ReadFile(before)
	if err != nil {
		return err
	}
	b, err := measure.ReadFile(after)
	if err != nil {
		return err
	}

	var out bytes.Buffer
	for _, d := range []struct {
		name, path string
		*measure.Document
	}{{"a", before, a}, {"b", after, b}} {
		fmt.Fprintf(&out, "%s  %s: %s, %v\n", d.name, d.path, d.Date.Format("2006-01-02 15:04"), d.Machine)
	}
	rows := [][]string{append(slices.Clip(caseColumns), "ENTRY", "A US", "B US", "B/A", "YARDSTICK", "B/A", "VERDICT")}
	for _, p := range pairs(a, b) {
		rows = append(rows, p.cells())
	}
	writeCases(&out, rows)
	out.WriteString(aboutCompare)
	_, err = stdout.Write(out.Bytes())
	return err
}

// writeCases writes a table of cases under a caption with what is alike in all of them.
func writeCases(out *bytes.Buffer, rows [][]string) {
	caption, rows := withoutConstants(rows, caseColumns)
	fmt.Fprintf(out, "\ncalls: %s\n\n", caption)
	writeTable(out, rows)
}

const aboutCompare = `
A US, B US: medians. YARDSTICK: the yardstick most like the call, in the same runs. If it has
changed as much, the machine has. VERDICT: faster or slower, if both the time and its ratio to the
yardstick have changed by more than 10 % in the same direction; same, if the ratio has not; and unclear, if only the
yardstick has changed: measure again.
`

// pair is a row of two runs. If only one run has it, the other's row has no calls.
type pair struct {
	measure.Case
	of     string // the swept values of the row
	a, b   measure.Row
	ya, yb measure.Row // the yardstick of each
}

// pairs returns the rows of a, in their order, each with the matching row of b, and then the rows
// that only b has. Transport, topology and configuration have to match if a run has several; what
// is the same in all results of a run may differ between the runs.
func pairs(a, b *measure.Document) (all []pair) {
	swept := func(value func(measure.Result) string) func(measure.Result) string {
		for _, d := range []*measure.Document{a, b} {
			if slices.ContainsFunc(d.Results, func(r measure.Result) bool { return value(r) != value(d.Results[0]) }) {
				return func(r measure.Result) string { return " " + value(r) }
			}
		}
		return func(measure.Result) string { return "" }
	}

	transport := swept(func(r measure.Result) string { return r.Transport })
	topology := swept(func(r measure.Result) string { return r.Topology })
	file := swept(func(r measure.Result) string { return r.Config })

	type key struct {
		measure.Case
		name, of string
	}
	index := map[key]int{}

	find := func(r measure.Result, row measure.Row) (p *pair, isNew bool) {
		k := key{r.Case, row.Name(), transport(r) + topology(r) + file(r)}
		i, found := index[k]
		if !found {
			i = len(all)
			index[k] = i
			all = append(all, pair{Case: r.Case, of: k.of})
		}
		return &all[i], !found
	}

	for _, r := range a.Results {
		for _, row := range r.Algorithms() {
			if p, isNew := find(r, row); isNew {
				p.a, p.ya = row, yardstickOf(r)
			}
		}
	}

	for _, r := range b.Results {
		for _, row := range r.Algorithms() {
			p, _ := find(r, row)
			p.b, p.yb = row, yardstickOf(r)
		}
	}
	return all
}

// synchronisationBytes bounds the lengths at which a call costs about one synchronisation.
const synchronisationBytes = 1 << 10

// yardstickOf returns the yardstick that is most like the call: a barrier for short vectors, a copy
// of another rank's data for long ones, core to core for barriers, the floor for workloads.
func yardstickOf(r measure.Result) measure.Row {
	switch {
	case r.Bytes == 0:
		return r.Yardstick(measure.CoreToCore)
	case measure.IsWorkload(r.Collective):
		return r.Floor()
	case r.Bytes <= synchronisationBytes:
		return r.Yardstick(measure.Barrier)
	}
	return r.Yardstick(measure.PeerCopy)
}

func (p pair) cells() []string {
	time, machine := ratioOf(p.b, p.a), ratioOf(p.yb, p.ya)
	return append(caseCells(p.Case), orDash(strings.TrimSpace(cmp.Or(p.a.Name(), p.b.Name())+p.of)), measure.Digits(p.a.P50, 4), measure.Digits(p.b.P50, 4),
		measure.Multiple(time), orDash(cmp.Or(p.ya.Entry, p.yb.Entry)), measure.Multiple(machine), p.verdict(time, machine))
}

// caseColumns are the columns that identify the call. PLACE is in or out of place.
var caseColumns = []string{"COLLECTIVE", "TYPE", "OP", "RANKS", "PLACE", "SIZE"}

func caseCells(c measure.Case) []string {
	buffers, size := "-", "-"
	if c.Bytes > 0 {
		buffers, size = map[bool]string{true: "in", false: "out"}[c.InPlace], ccl.ByteSize(c.Bytes).String()
	}
	if c.Consume {
		buffers += ", read"
	}
	if pace := c.Pace(); pace != "" {
		buffers += ", " + pace
	}
	return []string{c.Collective, orDash(c.DType), orDash(c.Op), strconv.Itoa(c.Ranks), buffers, size}
}

// ratioOf returns the ratio of two medians, 0 if one is missing.
func ratioOf(b, a measure.Row) float64 {
	if a.P50 == 0 {
		return 0
	}
	return b.P50 / a.P50
}

func (p pair) verdict(time, machine float64) string {
	switch {
	case p.a.Calls == 0 && p.b.Calls == 0:
		return "refused"
	case p.a.Calls == 0:
		return "only in b"
	case p.b.Calls == 0:
		return "only in a"
	case p.b.Errors > 0:
		return "wrong in b"
	case p.a.Errors > 0:
		return "wrong in a"
	case machine == 0: // without a yardstick
		machine = 1
	}
	switch relative := time / machine; {
	case relative < noticeable && relative > 1/noticeable:
		return "same"
	case relative >= noticeable && time >= noticeable:
		return "slower"
	case relative <= 1/noticeable && time <= 1/noticeable:
		return "faster"
	}
	return "unclear"
}
