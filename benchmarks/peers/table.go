package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// writeTable writes the medians in microseconds as a table of markdown; in brackets, as
// multiples of the reference. Rows are ordered as merge leaves them.
func writeTable(w io.Writer, rows []row, reference contestant) {
	all := contestants(rows)
	head := []string{"ranks", "bytes"}
	if len(rows) > 0 && rows[0].workload != "" {
		head[1] = "workload"
	}
	for _, c := range all {
		head = append(head, c.title())
	}
	lines := [][]string{head}
	for i, at := range rows {
		if i > 0 && rows[i-1].ranks == at.ranks && rows[i-1].bytes == at.bytes {
			continue // the reference
		}
		base, compared := find(rows, reference, at.ranks, at.bytes)
		line := []string{fmt.Sprint(at.ranks), at.subject()}
		for _, c := range all {
			cell := "" // it failed
			if r, ok := find(rows, c, at.ranks, at.bytes); ok {
				cell = formatTime(r.p50)
				if compared && base.p50 > 0 && c.library != reference.library {
					cell += fmt.Sprintf(" (%s)", formatRatio(r.p50/base.p50))
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
