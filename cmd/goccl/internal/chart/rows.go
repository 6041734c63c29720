package chart

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// row is a row of two panels: times on the left, bus bandwidths on the right.
type row struct {
	heading string
	axis    string   // bytes, a parameter, ranks or topology
	values  []string // on the axis, at 0, 1, 2 and so on; nil: lengths, at their base-2 logarithms
	// The lengths that both panels show if their axis has others; -1: all.
	shortest, longest int
	lines             []*line // in the order of the results
}

// line is an algorithm or a yardstick over the axis.
type line struct {
	name      string
	yardstick string // its name, "" for an algorithm
	points    []point
}

type point struct {
	x     float64
	bytes int
	measure.Row
}

// rows returns all rows of panels of a document.
func rows(d *measure.Document) (all []*row) {
	for _, section := range split(d.Results, measure.Result.Section) {
		if measure.IsWorkload(section[0].Collective) {
			continue
		}
		if r := overLengths(d, section); r != nil {
			all = append(all, r)
		}

		for _, key := range varied(section) {
			all = append(all, overValues(d.Heading(section[0]), key, section, func(_ measure.Result, of measure.Row) (string, bool) {
				value, has := params(of)[key]
				return value, has
			}))
		}
	}
	return append(all, across(d)...)
}

// across returns the rows of panels for which several sections are needed.
func across(d *measure.Document) (all []*row) {
	return append(
		overSections(d, "ranks", func(r measure.Result) string { return strconv.Itoa(r.Ranks) }, func(r *measure.Result) { r.Ranks = 0 }),
		overSections(d, "topology", func(r measure.Result) string { return r.Topology }, func(r *measure.Result) { r.Topology = "" })...)
}

// overSections returns the panels over a property of results, of all sections that have nothing
// else different.
func overSections(d *measure.Document, axis string, value func(measure.Result) string, clear func(*measure.Result)) (all []*row) {
	without := func(r measure.Result) measure.Result {
		clear(&r)
		return r
	}

	for _, group := range split(d.Results, func(r measure.Result) measure.Section { return without(r).Section() }) {
		if measure.IsWorkload(group[0].Collective) {
			continue
		}
		r := overValues(d.Heading(without(group[0])), axis, group, func(r measure.Result, _ measure.Row) (string, bool) { return value(r), true })
		if len(r.values) > 1 {
			all = append(all, r)
		}
	}
	return all
}

// overValues returns the panels over values that rows have. A row that has none is the same at all
// of them.
func overValues(heading, axis string, results []measure.Result, valueOf func(measure.Result, measure.Row) (string, bool)) *row {
	all := &row{heading: heading + ": over " + axis, axis: axis}
	for _, r := range results {
		for _, of := range r.Rows {
			if value, has := valueOf(r, of); has && !slices.Contains(all.values, value) {
				all.values = append(all.values, value)
			}
		}
	}

	byLength := func(a, b measure.Result) int { return cmp.Compare(a.Bytes, b.Bytes) }
	all.shortest, all.longest = slices.MinFunc(results, byLength).Bytes, slices.MaxFunc(results, byLength).Bytes

	for _, r := range results {
		for _, of := range r.Rows {
			value, has := valueOf(r, of)
			name := of
			name.Params = strings.Join(slices.DeleteFunc(strings.Fields(of.Params), func(p string) bool { return p == axis+"="+value }), " ")
			for x, at := range all.values {
				if at == value || !has {
					all.add(name.Name(), float64(x), r.Bytes, of)
				}
			}
		}
	}

	return all
}

// split splits the results that have numbers by a key.
func split[K comparable](results []measure.Result, key func(measure.Result) K) [][]measure.Result {
	return measure.Split(slices.DeleteFunc(slices.Clone(results), func(r measure.Result) bool { return !slices.ContainsFunc(r.Rows, measured) }), key)
}

func measured(row measure.Row) bool { return row.Calls > 0 }

// overLengths returns the panels over the length, nil if something else varies and the length does
// not, or if there is none.
func overLengths(d *measure.Document, section []measure.Result) *row {
	single := !slices.ContainsFunc(section, func(r measure.Result) bool { return r.Bytes != section[0].Bytes })
	if section[0].Bytes == 0 || single && len(varied(section)) > 0 {
		return nil
	}
	all := &row{heading: d.Heading(section[0]), axis: "bytes of one rank's input", shortest: -1, longest: -1}
	for _, r := range section {
		for _, of := range r.Rows {
			all.add(of.Name(), math.Log2(float64(r.Bytes)), r.Bytes, of)
		}
	}
	return all
}

func (r *row) add(name string, x float64, bytes int, of measure.Row) {
	if !measured(of) {
		return
	}
	l := &line{name: name}
	if of.Library == measure.Yardstick {
		l.yardstick, l.name = of.Entry, yardsticks[of.Entry].name
	}

	i := slices.IndexFunc(r.lines, func(o *line) bool { return o.name == l.name && o.yardstick == l.yardstick })
	if i < 0 {
		i = len(r.lines)
		r.lines = append(r.lines, l)
	}
	r.lines[i].points = append(r.lines[i].points, point{x, bytes, of})
}

// of names the length that a panel shows, "" if it shows all.
func of(bytes int) string {
	if bytes <= 0 {
		return ""
	}
	size := ccl.ByteSize(bytes).String()
	if size == strconv.Itoa(bytes) {
		size += " bytes"
	}
	return " of " + size
}

// params returns the values of the parameters that are varied.
func params(row measure.Row) map[string]string {
	all := map[string]string{}
	for _, p := range strings.Fields(row.Params) {
		key, value, _ := strings.Cut(p, "=")
		all[key] = value
	}
	return all
}

// varied returns the parameters of which a section has several values, sorted.
func varied(section []measure.Result) (keys []string) {
	first := map[string]string{}
	several := map[string]bool{}
	for _, r := range section {
		for _, row := range r.Rows {
			for key, value := range params(row) {
				if before, known := first[key]; known && before != value {
					several[key] = true
				}
				first[key] = value
			}
		}
	}

	return slices.Sorted(maps.Keys(several))
}
