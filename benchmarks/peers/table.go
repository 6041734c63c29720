package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

// writeTables writes the medians, and which cores the ranks were allowed to use.
func writeTables(w io.Writer, rows []table.Row, reference table.Contestant) {
	writeTable(w, rows, reference)
	fmt.Fprintln(w)
	writeCores(w, rows)
}

// writeTable writes the medians in microseconds as a table of markdown; in brackets, as
// multiples of the reference. Rows are ordered as merge leaves them.
func writeTable(w io.Writer, rows []table.Row, reference table.Contestant) {
	all := listContestants(rows)
	head := []string{"ranks", "bytes"}
	if len(rows) > 0 && rows[0].Workload != "" {
		head[1] = "workload"
	}
	for _, c := range all {
		head = append(head, titleOf(c))
	}
	lines := [][]string{head}
	for i, at := range rows {
		if i > 0 && rows[i-1].Ranks == at.Ranks && rows[i-1].Bytes == at.Bytes {
			continue // the reference
		}
		base, compared := findRow(rows, reference, at.Ranks, at.Bytes)
		line := []string{fmt.Sprint(at.Ranks), subjectOf(at)}
		for _, c := range all {
			cell := "" // it failed
			if r, ok := findRow(rows, c, at.Ranks, at.Bytes); ok {
				cell = formatTime(r.P50US)
				if compared && base.P50US > 0 && c.Library != reference.Library {
					cell += fmt.Sprintf(" (%s)", formatRatio(r.P50US/base.P50US))
				}
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	writeMarkdown(w, lines)
}

// writeMarkdown writes a table of Markdown, aligned to the right; the first line is its head.
func writeMarkdown(w io.Writer, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}

	for n, line := range lines {
		for i, cell := range line {
			fmt.Fprintf(w, "| %*s ", widths[i], cell)
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for _, width := range widths {
				fmt.Fprintf(w, "| %s: ", strings.Repeat("-", width-1))
			}
			fmt.Fprintln(w, "|")
		}
	}
}

// formatTime formats microseconds with at least two digits, without digits below the
// noise.
func formatTime(us float64) string {
	switch {
	case us < 10:
		return fmt.Sprintf("%.2f", us)
	case us < 100:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}

func formatRatio(x float64) string {
	switch {
	case x < 1:
		return fmt.Sprintf("%.2fx", x)
	case x < 10:
		return fmt.Sprintf("%.1fx", x)
	}
	return fmt.Sprintf("%.0fx", x)
}

// writeCores writes which cores the ranks of each contestant were allowed to use.
func writeCores(w io.Writer, rows []table.Row) {
	type binding struct {
		ranks int
		cores string
	}
	var order []binding
	titles := map[binding][]string{}
	for _, r := range rows {
		at := binding{r.Ranks, r.Cores}
		if titles[at] == nil {
			order = append(order, at)
		}

		if title := titleOf(r.Contestant); !slices.Contains(titles[at], title) {
			titles[at] = append(titles[at], title)
		}
	}

	for _, at := range order {
		fmt.Fprintf(w, "%d ranks on cores %s: %s\n", at.ranks, cmp.Or(at.cores, "unknown"), strings.Join(titles[at], "; "))
	}
}

// subjectOf returns the workload of a row, or the size.
func subjectOf(r table.Row) string {
	if r.Workload != "" {
		return r.Workload
	}
	return formatSize(r.Bytes)
}
