package tool

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/goccl/goccl/cmd/goccl/internal/doctor"
)

// write prints the findings, part by part, each with its verdict.
func (e *examination) write(stdout io.Writer) error {
	width := 0
	for _, f := range e.Findings {
		width = max(width, len(f.Name))
	}
	var b bytes.Buffer
	for _, part := range doctor.Parts() {
		fmt.Fprintf(&b, "%s\n", part)
		for _, f := range e.Findings {
			if f.Part != part {
				continue
			}
			fmt.Fprintf(&b, "  %-7s  %-*s  %s\n", f.Verdict, width, f.Name, strings.ReplaceAll(f.Says, "\n", "; "))
			if f.Do != "" {
				fmt.Fprintf(&b, "  %-7s  %-*s  -> %s\n", "", width, "", f.Do)
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s, %s\n", counted(doctor.Count(e.Findings, doctor.Problem), "problem"), counted(doctor.Count(e.Findings, doctor.Note), "note"))
	_, err := stdout.Write(b.Bytes())
	return err
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
