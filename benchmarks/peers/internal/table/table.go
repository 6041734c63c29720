// Package table is what a contestant's program prints and command peers reads and merges: CSV
// with one row for each measured size.
//
// # Model
//
// A program writes one table when it has measured all of its sizes. Command peers parses the tables
// of all passes, merges their rows, and writes the result in the same form.
package table

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Columns is the first line of a table. Times are in microseconds, bandwidths in GB/s.
//
// cores are those that each rank may use, "0|1". x_own_copy and x_peer_copy, ratios to yardsticks
// of the same run, are empty here, and so are values that a barrier does not have.
const Columns = "library,collective,entry,dtype,op,ranks,bytes,in_place,consume,cores,compute_us,passes,calls," +
	"p50_us,best_us,p90_us,p99_us,min_us,algbw_gbs,busbw_gbs,x_own_copy,x_peer_copy,errors"

// Contestant is a library with one of its settings.
type Contestant struct{ Library, Entry string }

// String names the library and its settings.
func (c Contestant) String() string { return c.Library + " " + c.Entry }

// Row is the measurement of a contestant for one size: an all-reduce of float32, sum, in place; a
// barrier, if it has 0 bytes; or the communication of a step of a workload, whose gradients have
// that size.
type Row struct {
	Contestant
	Workload            string // its name, or ""
	Ranks, Bytes        int
	Cores               string  // that each rank may use, if known
	ComputeUS           float64 // before each call
	Passes, Calls       int
	P50US, P90US, P99US float64 // of one pass, or medians over the passes
	BestUS              float64 // the least median of a pass
	LeastUS             float64 // of all calls
	Errors              int     // wrong elements, of all ranks and calls
}

// Measured returns a row of one pass with the times of its calls, which it sorts.
func Measured(c Contestant, ranks, bytes int, cores string, times []time.Duration) Row {
	slices.Sort(times)
	at := func(i int) float64 { return float64(times[i].Nanoseconds()) / 1e3 }
	n := len(times)
	return Row{Contestant: c, Ranks: ranks, Bytes: bytes, Cores: cores, Passes: 1, Calls: n,
		P50US: at(n / 2), BestUS: at(n / 2), P90US: at(n * 9 / 10), P99US: at(n * 99 / 100), LeastUS: at(0)}
}

// Parse parses the output of a contestant's program.
func Parse(text string) (rows []Row, err error) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	names := strings.Split(Columns, ",")
	if len(records) == 0 || !slices.Equal(records[0], names) {
		return nil, fmt.Errorf("what it printed is no table: the first line is not %q", Columns)
	}

	for i, record := range records[1:] {
		fields := fieldReader{values: map[string]string{}}
		for j, name := range names {
			fields.values[name] = record[j]
		}
		r := fields.row()
		if len(fields.invalid) > 0 {
			return nil, fmt.Errorf("line %d: no sense in %s: %s", i+2, strings.Join(fields.invalid, ", "), strings.Join(record, ","))
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// fieldReader reads the fields of a line, and collects the names of those that make no sense.
type fieldReader struct {
	values  map[string]string
	invalid []string
}

func (f *fieldReader) row() Row {
	r := Row{
		Contestant: Contestant{f.values["library"], f.values["entry"]},
		Ranks:      f.count("ranks"), Bytes: f.count("bytes"), Errors: f.count("errors"),
		Cores: f.values["cores"], ComputeUS: f.time("compute_us"), Passes: f.count("passes"), Calls: f.count("calls"),
		P50US: f.time("p50_us"), P90US: f.time("p90_us"), P99US: f.time("p99_us"),
		BestUS: f.time("best_us"), LeastUS: f.time("min_us"),
	}
	if name, ok := strings.CutPrefix(f.values["collective"], stepPrefix); ok {
		r.Workload = name
	}
	if f.values["collective"] != r.collective() {
		f.invalid = append(f.invalid, "collective")
	}
	return r
}

func (f *fieldReader) count(name string) int {
	n, err := strconv.Atoi(f.values[name])
	if err != nil || n < 0 {
		f.invalid = append(f.invalid, name)
	}
	return n
}

func (f *fieldReader) time(name string) float64 {
	us, err := strconv.ParseFloat(f.values[name], 64)
	if err != nil || !(us >= 0) {
		f.invalid = append(f.invalid, name)
	}
	return us
}

// Write writes the rows as CSV.
func Write(w io.Writer, rows []Row) error {
	lines := [][]string{strings.Split(Columns, ",")}
	for _, r := range rows {
		dtype, op, inPlace, algbw, busbw := "", "", "", "", ""
		if r.Bytes > 0 {
			rate := float64(r.Bytes) / max(r.P50US, 1e-3) / 1e3 // bytes per us are MB/s
			dtype, op, inPlace = "float32", "sum", "true"
			if r.Workload != "" {
				op = "avg"
			}
			algbw = fmt.Sprintf("%.4f", rate)
			busbw = fmt.Sprintf("%.4f", rate*2*float64(r.Ranks-1)/float64(r.Ranks))
		}

		us := func(t float64) string { return fmt.Sprintf("%.3f", t) }
		lines = append(lines, []string{r.Library, r.collective(), r.Entry, dtype, op,
			strconv.Itoa(r.Ranks), strconv.Itoa(r.Bytes), inPlace, "false", r.Cores, fmt.Sprintf("%.0f", r.ComputeUS),
			strconv.Itoa(r.Passes), strconv.Itoa(r.Calls), us(r.P50US), us(r.BestUS), us(r.P90US), us(r.P99US), us(r.LeastUS),
			algbw, busbw, "", "", strconv.Itoa(r.Errors)})
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// stepPrefix begins the collective of a row of a workload.
const stepPrefix = "ddp_"

func (r Row) collective() string {
	switch {
	case r.Workload != "":
		return stepPrefix + r.Workload
	case r.Bytes == 0:
		return "barrier"
	}
	return "all_reduce"
}
