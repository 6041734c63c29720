// Command gen writes the assembly of package reduce and its declarations in Go to a directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . directory")
		os.Exit(2)
	}
	for _, m := range []*machine{
		{name: "AVX2", width: 32, elements: elements},
		{name: "AVX512", width: 64, avx512: true, elements: []element{bfloat16s}},
	} {
		if err := m.write(os.Args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", m.name, err)
			os.Exit(1)
		}
	}
}

// write writes the functions for m as two files.
func (m *machine) write(dir string) error {
	m.context = build.NewContext()
	m.ConstraintExpr("!noasm,!race")
	for _, e := range m.elements {
		m.function(e)
	}
	if !m.avx512 {
		m.conversions()
	}

	file, err := m.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}

	cfg := printer.Config{Name: "internal/reduce/_gen", Pkg: "reduce"}
	for suffix, p := range map[string]printer.Printer{
		"_amd64.s":  printer.NewGoAsm(cfg),
		"_amd64.go": printer.NewStubs(cfg),
	} {
		text, err := p.Print(file)
		if err != nil {
			return err
		}
		name := "assembly_" + strings.ToLower(m.name) + suffix
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
