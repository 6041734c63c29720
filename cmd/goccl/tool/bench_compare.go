package tool

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// noticeable is the ratio from which on something is called a difference. Medians
// repeat within a few percent.
const noticeable = 1.1

// compareFiles prints what changed from one run to another.
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
	out.WriteString("\n")
	writeTable(&out, rows)
	out.WriteString(aboutCompare)
	_, err = stdout.Write(out.Bytes())
	return err
}

const aboutCompare = `
A US, B US: medians. YARDSTICK: what the same runs had for the yardstick that is most like the call. If it has
changed as much, it was the machine. VERDICT: faster or slower, if both the time and its ratio to the
yardstick have changed by more than 10 % in the same direction; same, if the ratio has not; and unclear, if only the
yardstick has changed: measure again.
`

// pair is a row that was measured twice, or once: then one of the two has no calls.
type pair struct {
	measure.Case
	a, b   measure.Row
	ya, yb measure.Row // the yardstick of each
}

// pairs returns the rows of a, in their order, with those of b, and then those that
// only b has.
func pairs(a, b *measure.Document) (all []pair) {
	type key struct {
		measure.Case
		entry string
	}
	index := map[key]int{}
	for _, r := range a.Results {
		for _, row := range r.Algorithms() {
			k := key{r.Case, row.Entry}
			if _, twice := index[k]; !twice {
				index[k] = len(all)
				all = append(all, pair{Case: r.Case, a: row, ya: yardstickOf(r)})
			}
		}
	}
	for _, r := range b.Results {
		for _, row := range r.Algorithms() {
			i, found := index[key{r.Case, row.Entry}]
			if !found {
				i = len(all)
				all = append(all, pair{Case: r.Case})
			}
			all[i].b, all[i].yb = row, yardstickOf(r)
		}
	}
	return all
}

// synchronisationBytes is up to where a call costs about what meeting costs.
const synchronisationBytes = 1 << 10

// yardstickOf returns the yardstick that is most like the call: a barrier for short
// vectors, copying what another rank has written for long ones, and the way between
// two cores for barriers.
func yardstickOf(r measure.Result) measure.Row {
	switch {
	case r.Bytes == 0:
		return r.Yardstick(measure.CoreToCore)
	case r.Bytes <= synchronisationBytes:
		return r.Yardstick(measure.Barrier)
	}
	return r.Yardstick(measure.PeerCopy)
}

func (p pair) cells() []string {
	entry := p.a.Entry
	if p.a.Calls == 0 {
		entry = p.b.Entry
	}
	yardstick := p.ya.Entry
	if yardstick == "" {
		yardstick = p.yb.Entry
	}
	time, machine := over(p.b, p.a), over(p.yb, p.ya)
	return append(caseCells(p.Case), orDash(entry),
		measure.Digits(p.a.P50, 4), measure.Digits(p.b.P50, 4), measure.Multiple(time), orDash(yardstick), measure.Multiple(machine), p.verdict(time, machine))
}

// caseColumns are the columns that say which call it is.
var caseColumns = []string{"COLLECTIVE", "TYPE", "OP", "RANKS", "PLACE", "SIZE"}

func caseCells(c measure.Case) []string {
	place, size := "-", "-"
	if c.Bytes > 0 {
		place, size = map[bool]string{true: "in", false: "out"}[c.InPlace], ccl.ByteSize(c.Bytes).String()
	}
	if c.Consume {
		place += ", read"
	}
	return []string{c.Collective, orDash(c.DType), orDash(c.Op), strconv.Itoa(c.Ranks), place, size}
}

// over returns the ratio of two medians, 0 if one is missing.
func over(b, a measure.Row) float64 {
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
	case machine == 0: // it has no yardstick; then nothing can have changed with it
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
