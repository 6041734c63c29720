package measure

import (
	"encoding/csv"
	"io"
	"strconv"
)

// Columns are the names of the columns of CSV. Missing numbers are empty.
var Columns = []string{
	"library", "collective", "entry", "dtype", "op", "ranks", "bytes", "in_place", "consume",
	"calls", "p50_us", "p99_us", "min_us", "algbw_gbs", "busbw_gbs", "x_own_copy", "x_peer_copy", "x_floor", "errors",
	"compute_us", "jitter", "buckets", "p90_us", "whole_us", "cpu_cores",
	"transport", "memory", "params", "topology", "config",
	"wait", "added_us", "hidden", "x_at_end",
}

// WriteCSV writes the results as CSV (RFC 4180, but with lines that end in "\n"),
// Columns first.
func WriteCSV(w io.Writer, results []Result) error {
	records := [][]string{Columns}
	for _, r := range results {
		for _, row := range r.Rows {
			if row.Calls == 0 {
				continue
			}
			records = append(records, []string{
				row.Library, r.Collective, row.Entry, r.DType, r.Op,
				strconv.Itoa(r.Ranks), strconv.Itoa(r.Bytes), strconv.FormatBool(r.InPlace), strconv.FormatBool(r.Consume),
				strconv.Itoa(row.Calls), number(row.P50), number(row.P99), number(row.Min),
				number(row.AlgBW), number(row.BusBW), number(row.XOwnCopy), number(row.XPeerCopy), number(row.XFloor), strconv.Itoa(row.Errors),
				number(float64(r.Compute.Nanoseconds()) / 1e3), number(r.Jitter), strconv.Itoa(r.buckets()), number(row.P90), number(row.Whole), number(row.CPU),
				r.Transport, row.Memory, row.Params, r.Topology, r.Config,
				strconv.FormatBool(r.Wait), number(row.Added), number(row.Hidden), number(row.XAtEnd),
			})
		}
	}
	return csv.NewWriter(w).WriteAll(records)
}

// number writes a number without an exponent.
func number(x float64) string {
	if x == 0 {
		return ""
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}
