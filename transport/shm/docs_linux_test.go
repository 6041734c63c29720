package shm

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/reference/processes.md states correctly how much of /dev/shm a job and a group take.
func TestDocumentedSizes(t *testing.T) {
	documentedSizes(t, "| ranks | MiB |\n|---|---|\n", DefaultGeometry)
	documentedSizes(t, "| ranks of the group | MiB |\n|---|---|\n", GroupGeometry)
}

func documentedSizes(t *testing.T, head string, geometry func(ranks int) Geometry) {
	text, err := os.ReadFile("../../docs/reference/processes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), head)
	if !found {
		t.Fatalf("docs/reference/processes.md has no table that begins with %s", head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table + "\n") {
		var ranks int
		if _, err := fmt.Sscanf(row, "| %d |", &ranks); err != nil {
			t.Fatal(row, err)
		}
		h, err := newHeader(Job{Name: "x", Size: ranks}, geometry(ranks).layout(ranks).total)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("| %d | %.1f |\n", ranks, float64(h.total())/(1<<20)); row != want {
			t.Errorf("docs/reference/processes.md says %s, and it is %s", row, want)
		}
	}
}
