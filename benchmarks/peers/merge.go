package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

// mergePasses makes one row of all passes of a contestant over a size: the medians of their p50,
// p90 and p99, the least of their p50 and of all calls, the sum of passes, calls and errors.
// Contestants keep the order of their first rows.
func mergePasses(rows []table.Row) (merged []table.Row) {
	type key struct {
		table.Contestant
		ranks, bytes int
	}

	passes := map[key][]table.Row{}
	var keys []key
	for _, r := range rows {
		at := key{r.Contestant, r.Ranks, r.Bytes}
		if passes[at] == nil {
			keys = append(keys, at)
		}
		passes[at] = append(passes[at], r)
	}

	for _, at := range keys {
		all := passes[at]
		r := table.Row{Contestant: at.Contestant, Workload: all[0].Workload, Ranks: at.ranks, Bytes: at.bytes, ComputeUS: all[0].ComputeUS, BestUS: all[0].BestUS, LeastUS: all[0].LeastUS}
		var p50, p90, p99 []float64

		var cores []string
		for _, pass := range all {
			p50, p90, p99 = append(p50, pass.P50US), append(p90, pass.P90US), append(p99, pass.P99US)
			r.BestUS, r.LeastUS = min(r.BestUS, pass.BestUS), min(r.LeastUS, pass.LeastUS)
			r.Passes += pass.Passes
			r.Calls += pass.Calls
			r.Errors += pass.Errors
			if !slices.Contains(cores, pass.Cores) {
				cores = append(cores, pass.Cores)
			}
		}

		r.P50US, r.P90US, r.P99US = median(p50), median(p90), median(p99)
		r.Cores = strings.Join(cores, " or ")
		merged = append(merged, r)
	}

	slices.SortStableFunc(merged, func(a, b table.Row) int {
		return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(a.Bytes, b.Bytes))
	})
	return merged
}

// median sorts x, which is not empty.
func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// listContestants returns those that have rows, in the order of their first rows.
func listContestants(rows []table.Row) (all []table.Contestant) {
	for _, r := range rows {
		if !slices.Contains(all, r.Contestant) {
			all = append(all, r.Contestant)
		}
	}
	return all
}

// findRow returns the row of a contestant for a size, if any.
func findRow(rows []table.Row, c table.Contestant, ranks, bytes int) (table.Row, bool) {
	i := slices.IndexFunc(rows, func(r table.Row) bool {
		return r.Contestant == c && r.Ranks == ranks && r.Bytes == bytes
	})
	if i < 0 {
		return table.Row{}, false
	}
	return rows[i], true
}
