package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// ownContestants are the columns of the summary.
var ownContestants = []contestant{goroutines, ours, alloc}

// comparison is the times of the faster MPI divided by goccl's for one size: above 1 goccl is
// faster.
type comparison struct {
	ranks, bytes int
	compute      float64 // microseconds before each call
	faster       row     // the row of MPI with the least median over the passes
	fasterBest   row     // that with the least median of a pass
	x, xBest     []float64
	// x and xBest have an element for each of ownContestants, by medians over the passes and
	// by the best passes; 0: it was not measured
}

// compare compares the settings of Open MPI and MPICH with goccl, for each size. Rows are
// ordered as merge leaves them.
func compare(rows []row) (all []comparison) {
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r row) bool { return r.ranks != rows[0].ranks || r.bytes != rows[0].bytes })
		if n < 0 {
			n = len(rows)
		}
		if c, ok := compareSize(rows[:n]); ok {
			all = append(all, c)
		}
		rows = rows[n:]
	}
	return all
}

// compareSize compares the rows of one size, if an MPI is among them.
func compareSize(rows []row) (c comparison, ok bool) {
	for _, r := range rows {
		if r.library != "openmpi" && r.library != "mpich" {
			continue
		}
		if !ok || r.p50 < c.faster.p50 {
			c.faster = r
		}
		if !ok || r.best < c.fasterBest.best {
			c.fasterBest = r
		}
		ok = true
	}
	c.ranks, c.bytes, c.compute = rows[0].ranks, rows[0].bytes, rows[0].compute
	for _, own := range ownContestants {
		x, xBest := 0.0, 0.0
		if r, found := find(rows, own, c.ranks, c.bytes); found {
			x, xBest = c.faster.p50/r.p50, c.fasterBest.best/r.best
		}
		c.x, c.xBest = append(c.x, x), append(c.xBest, xBest)
	}
	return c, ok
}

// writeSummary writes the comparisons as a table of Markdown, by medians and, in brackets, by
// the best passes.
func writeSummary(w io.Writer, all []comparison) {
	head := []string{"ranks", "bytes", "faster MPI", "its median"}
	for _, own := range ownContestants {
		head = append(head, "x "+own.entry)
	}
	lines := [][]string{head}
	for _, c := range all {
		line := []string{strconv.Itoa(c.ranks), formatSize(c.bytes), c.faster.title(), formatTime(c.faster.p50)}
		for i, x := range c.x {
			cell := "" // it failed
			if x > 0 {
				cell = fmt.Sprintf("%.2f (%.2f)", x, c.xBest[i])
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	writeMarkdown(w, lines)
}

// summaryColumns is the first line of peers-summary.csv.
const summaryColumns = "ranks,bytes,compute_us,faster,faster_p50_us,x_goroutines,x_processes,x_alloc," +
	"faster_best,faster_best_us,x_best_goroutines,x_best_processes,x_best_alloc"

// saveSummary writes the comparisons as CSV.
func saveSummary(w io.Writer, all []comparison) error {
	out := csv.NewWriter(w)
	lines := [][]string{strings.Split(summaryColumns, ",")}
	for _, c := range all {
		line := []string{strconv.Itoa(c.ranks), strconv.Itoa(c.bytes), fmt.Sprintf("%.0f", c.compute)}
		line = append(line, c.faster.String(), fmt.Sprintf("%.3f", c.faster.p50))
		line = append(line, ratios(c.x)...)
		line = append(line, c.fasterBest.String(), fmt.Sprintf("%.3f", c.fasterBest.best))
		line = append(line, ratios(c.xBest)...)
		lines = append(lines, line)
	}
	return out.WriteAll(lines)
}

// ratios formats ratios; missing ones are empty.
func ratios(all []float64) (text []string) {
	for _, x := range all {
		cell := ""
		if x > 0 {
			cell = fmt.Sprintf("%.3f", x)
		}
		text = append(text, cell)
	}
	return text
}

// writeCores writes which cores the ranks of each contestant were allowed to use.
func writeCores(w io.Writer, rows []row) {
	type binding struct {
		ranks int
		cores string
	}
	var order []binding
	titles := map[binding][]string{}
	for _, r := range rows {
		at := binding{r.ranks, r.cores}
		if titles[at] == nil {
			order = append(order, at)
		}
		if !slices.Contains(titles[at], r.title()) {
			titles[at] = append(titles[at], r.title())
		}
	}
	for _, at := range order {
		cores := at.cores
		if cores == "" {
			cores = "unknown"
		}
		fmt.Fprintf(w, "%d ranks on cores %s: %s\n", at.ranks, cores, strings.Join(titles[at], "; "))
	}
}
