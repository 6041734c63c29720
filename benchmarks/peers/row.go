package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// columns is the first line of a CSV file. Times are in microseconds, bandwidths
// in GB/s. cores are those that each rank may use, "0|1". x_own_copy and x_peer_copy, ratios to yardsticks of the same run, are
// empty here, and so are values that a barrier does not have.
const columns = "library,collective,entry,dtype,op,ranks,bytes,in_place,consume,cores,compute_us,passes,calls," +
	"p50_us,best_us,p90_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,errors"

// row is the measurement of a contestant for one size: an all-reduce of float32,
// sum, in place, or, with 0 bytes, a barrier; or the communication of a step of a workload, whose gradients have
// that size.
type row struct {
	contestant
	workload      string // its name, or ""
	ranks, bytes  int
	cores         string  // that each rank may use, if known
	compute       float64 // before each call, microseconds
	passes, calls int
	p50, p90, p99 float64 // microseconds: of one pass, or medians over the passes
	best, least   float64 // microseconds: the least p50 of a pass; the least of all calls
	errors        int     // wrong elements, of all ranks and calls
}

// contestant is a library with one of its settings.
type contestant struct{ library, entry string }

func (c contestant) String() string { return c.library + " " + c.entry }

// parseRows parses the output of a peer's program.
func parseRows(text string) ([]row, error) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	want := strings.Split(columns, ",")
	if len(records) == 0 || !slices.Equal(records[0], want) {
		return nil, fmt.Errorf("what it printed is no table: the first line is not %q", columns)
	}
	var rows []row
	for i, record := range records[1:] {
		field := func(name string) string { return record[slices.Index(want, name)] }
		r := row{contestant: contestant{field("library"), field("entry")}}
		var bad []string
		whole := func(name string) int {
			n, err := strconv.Atoi(field(name))
			if err != nil || n < 0 {
				bad = append(bad, name)
			}
			return n
		}
		time := func(name string) float64 {
			us, err := strconv.ParseFloat(field(name), 64)
			if err != nil || !(us >= 0) {
				bad = append(bad, name)
			}
			return us
		}
		r.ranks, r.bytes, r.errors = whole("ranks"), whole("bytes"), whole("errors")
		r.cores, r.compute, r.passes, r.calls = field("cores"), time("compute_us"), whole("passes"), whole("calls")
		r.p50, r.p90, r.p99 = time("p50_us"), time("p90_us"), time("p99_us")
		r.best, r.least = time("best_us"), time("min_us")
		if name, is := strings.CutPrefix(field("collective"), stepOf); is {
			r.workload = name
		}
		if field("collective") != r.collective() {
			bad = append(bad, "collective")
		}
		if len(bad) > 0 {
			return nil, fmt.Errorf("line %d: no sense in %s: %s", i+2, strings.Join(bad, ", "), strings.Join(record, ","))
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func writeRows(w io.Writer, rows []row) error {
	out := csv.NewWriter(w)
	lines := [][]string{strings.Split(columns, ",")}
	for _, r := range rows {
		dtype, op, inPlace, algbw, busbw := "", "", "", "", ""
		if r.bytes > 0 {
			rate := float64(r.bytes) / r.p50 / 1e3 // bytes per us are MB/s
			dtype, op, inPlace = "float32", "sum", "true"
			if r.workload != "" {
				op = "avg"
			}
			algbw = fmt.Sprintf("%.4f", rate)
			busbw = fmt.Sprintf("%.4f", rate*2*float64(r.ranks-1)/float64(r.ranks))
		}
		us := func(t float64) string { return fmt.Sprintf("%.3f", t) }
		lines = append(lines, []string{r.library, r.collective(), r.entry, dtype, op,
			strconv.Itoa(r.ranks), strconv.Itoa(r.bytes), inPlace, "false", r.cores, fmt.Sprintf("%.0f", r.compute),
			strconv.Itoa(r.passes), strconv.Itoa(r.calls), us(r.p50), us(r.best), us(r.p90), us(r.p99), us(r.least), algbw, busbw, "", "", strconv.Itoa(r.errors)})
	}
	return out.WriteAll(lines)
}

// stepOf begins the collective of a row of a workload.
const stepOf = "ddp_"

func (r row) collective() string {
	switch {
	case r.workload != "":
		return stepOf + r.workload
	case r.bytes == 0:
		return "barrier"
	}
	return "all_reduce"
}

// subject is the workload, or the size.
func (r row) subject() string {
	if r.workload != "" {
		return r.workload
	}
	return formatSize(r.bytes)
}
