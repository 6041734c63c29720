package arch

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists of exported declarations")

// private lists the packages that programs outside of this module cannot or do not import.
var private = []string{"internal/...", "transport/internal/...", "transport/mpi/internal/...", "algorithms/internal/...", "ccl/internal/...", "test/...", "cmd/...", "examples/...", "benchmarks/..."}

// TestExported compares the exported declarations of every public package, without their
// comments, with a list in testdata/api, so that no change of the surface goes unnoticed.
// After an intended one: go test ./test/arch -run 'TestExported|TestPromise' -update.
func TestExported(t *testing.T) {
	lists := map[string]bool{}
	for _, p := range goFiles(t) {
		name := relative(p.importPath)
		if slices.ContainsFunc(private, func(pattern string) bool { return match(pattern, name) }) {
			continue
		}
		file := filepath.Join("testdata", "api", strings.ReplaceAll(strings.Replace(name, ".", "goccl", 1), "/", "_")+".txt")
		lists[file] = true
		got := exported(t, p.files)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("the exported declarations of %s are not those of %s; if the change is intended, run this test with -update and note it in CHANGELOG.md:\n%s",
				name, file, difference(string(want), got))
		}
	}
	there, err := filepath.Glob(filepath.Join("testdata", "api", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range there {
		if !lists[file] {
			t.Errorf("%s: no such package", file)
		}
	}
}

// exported returns the exported declarations of a package, sorted.
func exported(t *testing.T, files []string) string {
	t.Helper()
	var texts []string
	set := token.NewFileSet()
	for _, name := range files {
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
			case *ast.FuncDecl:
				if d.Recv != nil && !ast.IsExported(receiver(d)) {
					continue
				}
				d.Body = nil
			}
			var text bytes.Buffer
			if err := printer.Fprint(&text, token.NewFileSet(), declaration); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text.String())
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n") + "\n"
}

// receiver returns the name of a method's type.
func receiver(method *ast.FuncDecl) string {
	typ := method.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// difference returns the lines of which only one of two texts has a copy.
func difference(want, got string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, text, other string }{{"-", want, got}, {"+", got, want}} {
		other := strings.Split(side.other, "\n")
		for line := range strings.SplitSeq(side.text, "\n") {
			if !slices.Contains(other, line) {
				b.WriteString(side.sign + " " + line + "\n")
			}
		}
	}
	return b.String()
}

type packageFiles struct {
	importPath string
	files      []string
}

// goFiles returns the packages of this module with their files on Linux, without tests.
func goFiles(t *testing.T) (packages []packageFiles) {
	t.Helper()
	const format = `{{$dir := .Dir}}{{.ImportPath}}{{range .GoFiles}} {{$dir}}/{{.}}{{end}}`
	cmd := exec.Command("go", "list", "-f", format, module+"/...")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(explain(err))
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		packages = append(packages, packageFiles{words[0], words[1:]})
	}
	return packages
}
