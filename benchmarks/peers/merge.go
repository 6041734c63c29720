package main

import (
	"cmp"
	"slices"
	"strings"
)

// merge makes one row of all passes of a contestant over a size: the medians of their p50,
// p90 and p99, the least of their p50 and of all calls, the sum of passes, calls and errors. Contestants keep the order of
// their first rows.
func merge(rows []row) (merged []row) {
	type key struct {
		contestant
		ranks, bytes int
	}
	passes := map[key][]row{}
	var keys []key
	for _, r := range rows {
		at := key{r.contestant, r.ranks, r.bytes}
		if passes[at] == nil {
			keys = append(keys, at)
		}
		passes[at] = append(passes[at], r)
	}
	for _, at := range keys {
		all := passes[at]
		r := row{contestant: at.contestant, workload: all[0].workload, ranks: at.ranks, bytes: at.bytes, compute: all[0].compute, best: all[0].best, least: all[0].least}
		var p50, p90, p99 []float64
		var cores []string
		for _, pass := range all {
			p50, p90, p99 = append(p50, pass.p50), append(p90, pass.p90), append(p99, pass.p99)
			r.best, r.least = min(r.best, pass.best), min(r.least, pass.least)
			r.passes += pass.passes
			r.calls += pass.calls
			r.errors += pass.errors
			if !slices.Contains(cores, pass.cores) {
				cores = append(cores, pass.cores)
			}
		}
		r.p50, r.p90, r.p99 = median(p50), median(p90), median(p99)
		r.cores = strings.Join(cores, " or ")
		merged = append(merged, r)
	}
	slices.SortStableFunc(merged, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.bytes, b.bytes))
	})
	return merged
}

// median sorts x, which is not empty.
func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// contestants returns those that have rows, in the order of their first rows.
func contestants(rows []row) (all []contestant) {
	for _, r := range rows {
		if !slices.Contains(all, r.contestant) {
			all = append(all, r.contestant)
		}
	}
	return all
}

// find returns the row of a contestant for a size, if any.
func find(rows []row, c contestant, ranks, bytes int) (row, bool) {
	i := slices.IndexFunc(rows, func(r row) bool {
		return r.contestant == c && r.ranks == ranks && r.bytes == bytes
	})
	if i < 0 {
		return row{}, false
	}
	return rows[i], true
}
