package ccltest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The package comment lists the checks, and the media.
func TestDocListsChecks(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{valid.name}
	for _, c := range checks {
		names = append(names, c.name)
	}
	var table strings.Builder
	for _, line := range wrapped(strings.Join(names, ", "), 74) {
		fmt.Fprintf(&table, "//\t%s\n", line)
	}
	if !strings.Contains(string(doc), "//\n"+table.String()+"//\n") {
		t.Errorf("doc.go does not contain\n%s", table.String())
	}
	table.Reset()
	for _, w := range []medium{poll, park, arena, smallest} {
		for i, line := range wrapped(w.about, 72) {
			if i > 0 {
				w = medium{}
			}
			fmt.Fprintf(&table, "//\t%-9s %s\n", w.name, line)
		}
	}
	if !strings.Contains(string(doc), "//\n"+table.String()+"//\n") {
		t.Errorf("doc.go does not contain\n%s", table.String())
	}
	ground := 0
	for _, c := range checks {
		if c.ground {
			ground++
		}
	}
	if ground != 5 || !strings.Contains(string(doc), "one of the first five") {
		t.Errorf("doc.go has another number of checks on which the others depend: %d", ground)
	}
}

// wrapped cuts text into lines of at most width bytes.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
