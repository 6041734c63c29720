package tool

import (
	"fmt"
	"io"
	"strings"

	"github.com/goccl/goccl/cmd/goccl/internal/doctor"
)

// findingsText is the text of an examination, of which each line is written when it is known: a
// program that the kernel ends has shown what it had found.
type findingsText struct {
	out  io.Writer
	part string // of the last finding
	err  error  // the first of out
}

// nameWidth is the width of the longest name of a finding.
const nameWidth = len("MADV_POPULATE_WRITE")

// write writes a finding with its verdict, and before the first of a part the part's name.
func (t *findingsText) write(f doctor.Finding) {
	if f.Part != t.part {
		if t.part != "" {
			t.print("\n")
		}
		t.part = f.Part
		t.print("%s\n", f.Part)
	}
	t.print("  %-7s  %-*s  %s\n", f.Verdict, nameWidth, f.Name, strings.ReplaceAll(f.Says, "\n", "; "))
	if f.Do != "" {
		t.print("  %-7s  %-*s  -> %s\n", "", nameWidth, "", f.Do)
	}
}

// end writes the last line, and returns the first error.
func (t *findingsText) end(findings []doctor.Finding) error {
	t.print("\n%s, %s\n", counted(doctor.Count(findings, doctor.Problem), "problem"), counted(doctor.Count(findings, doctor.Note), "note"))
	return t.err
}

func (t *findingsText) print(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.out, format, args...)
	}
}

func counted(n int, what string) string {
	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
