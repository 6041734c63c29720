package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// rowKey identifies a row of goccl bench.
type rowKey struct {
	call
	contestant
}

type call struct {
	Transport, Collective, DType, Op string
	Ranks, Bytes                     int
	InPlace                          bool `json:"in_place"`
}

type contestant struct{ Library, Entry, Params, Memory string }

// readTimes returns the medians of a file of goccl bench --json, in microseconds.
func readTimes(path string) (map[rowKey]float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	var document struct {
		Results []struct {
			call
			Rows []struct {
				contestant
				P50 float64 `json:"p50_us"`
			}
		}
	}

	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	times := map[rowKey]float64{}
	for _, r := range document.Results {
		for _, row := range r.Rows {
			if row.P50 > 0 {
				times[rowKey{r.call, row.contestant}] = row.P50
			}
		}
	}
	return times, nil
}

// ratios collects the passes of a comparison.
type ratios map[rowKey]*row

// row has the times of a row, in microseconds, by pass.
type row struct {
	base, now, ratio []float64
}

// add adds a pass. Rows that only one build has are not compared.
func (r ratios) add(base, now map[rowKey]float64) {
	for key, b := range base {
		n, found := now[key]
		if !found {
			continue
		}
		if r[key] == nil {
			r[key] = &row{}
		}
		x := r[key]
		x.base, x.now, x.ratio = append(x.base, b), append(x.now, n), append(x.ratio, n/b)
	}
}

// write prints the table, sorted by case.
func (r ratios) write(out io.Writer) error {
	if len(r) == 0 {
		return errors.New("the two builds have no case in common")
	}

	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TRANSPORT\tCOLLECTIVE\tRANKS\tBYTES\tROW\tBASE US\tNOW US\tNOW/BASE\tSPREAD")
	for _, key := range slices.SortedFunc(maps.Keys(r), compareKeys) {
		x := r[key]
		low, middle, high := quartiles(x.ratio)
		_, base, _ := quartiles(x.base)
		_, now, _ := quartiles(x.now)
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%.4g\t%.4g\t%.3f\t%.3f to %.3f\n",
			key.Transport, key.callName(), key.Ranks, key.Bytes, key.rowName(), base, now, middle, low, high)
	}
	fmt.Fprintln(w, "\nMedians over the passes. NOW/BASE: of the ratios of the passes; SPREAD: their quartiles. yardstick: the same code in both.")
	return w.Flush()
}

// compareKeys orders rows as a reader looks for them: by call, then by length.
func compareKeys(a, b rowKey) int {
	return cmp.Or(cmp.Compare(a.Transport, b.Transport), cmp.Compare(a.callName(), b.callName()), cmp.Compare(a.Ranks, b.Ranks),
		cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.rowName(), b.rowName()))
}

// callName names the call, with what differs from the default.
func (k rowKey) callName() string {
	name := k.Collective
	if k.DType != "" && k.DType != "float32" {
		name += " " + k.DType
	}
	if k.Op != "" && k.Op != "sum" {
		name += " " + k.Op
	}
	if k.Bytes > 0 && !k.InPlace {
		name += " out of place"
	}
	return name
}

// rowName names the contestant: an entry of the configuration, or a yardstick.
func (k rowKey) rowName() string {
	parts := []string{k.Library, k.Entry, k.Params, k.Memory}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" || p == "private" }), " ")
}

// quartiles returns the lower quartile, the median and the upper quartile.
func quartiles(values []float64) (low, middle, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	last := len(sorted) - 1
	return sorted[last/4], (sorted[last/2] + sorted[(last+1)/2]) / 2, sorted[last-last/4]
}
