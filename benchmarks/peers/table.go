package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// writeTable shows the medians in microseconds and, in brackets, how many times as
// long as goccl a peer takes. It is a table of markdown.
func writeTable(w io.Writer, rows []row) {
	all := contestants(rows)
	head := []string{"ranks", "bytes"}
	for _, c := range all {
		head = append(head, c.title())
	}
	lines := [][]string{head, nil}
	for _, at := range rows {
		if at.contestant != ours {
			continue
		}
		line := []string{fmt.Sprint(at.ranks), formatSize(at.bytes)}
		for _, c := range all {
			cell := "" // a peer that failed
			if r, ok := find(rows, c, at.ranks, at.bytes); ok {
				cell = formatTime(r.p50)
				if c != ours {
					cell += fmt.Sprintf(" (%s)", formatRatio(r.p50/at.p50))
				}
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(head))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for i := range head {
		lines[1] = append(lines[1], strings.Repeat("-", widths[i]-1)+":")
	}
	for _, line := range lines {
		for i, cell := range line {
			fmt.Fprintf(w, "| %*s ", widths[i], cell)
		}
		fmt.Fprintln(w, "|")
	}
}

// formatTime shows microseconds with two digits at least, and none that noise has
// long covered.
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
	if x < 10 {
		return fmt.Sprintf("%.1fx", x)
	}
	return fmt.Sprintf("%.0fx", x)
}
