package arch

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDocumented proves that every exported name of the public packages has a doc comment,
// that every package has a section on its model, and that a public package with waits or
// shared state, one that imports context or sync, has sections on its concurrency and its
// failures.
func TestDocumented(t *testing.T) {
	names := 0
	for _, p := range list(t, "./...") {
		name := relative(p.ImportPath)
		if strings.HasPrefix(name, "examples/") || name == "test/arch" || name == "internal/spin" {
			continue
		}
		d := documentation(t, filepath.Join("../..", name), p.ImportPath)
		public := !slices.ContainsFunc(private, func(pattern string) bool { return match(pattern, name) })
		sections := []string{"# Model"}
		if public && slices.ContainsFunc(p.Imports, func(i string) bool { return i == "context" || under(i, "sync") }) {
			sections = append(sections, "# Concurrency", "# Failure")
		}
		for _, section := range sections {
			if !strings.Contains(d.Doc, section) {
				t.Errorf("%s: the package comment has no section %q", p.ImportPath, section)
			}
		}
		if !public && !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "benchmarks/") {
			continue
		}
		check := func(what, comment string) {
			names++
			if strings.TrimSpace(comment) == "" {
				t.Errorf("%s: %s is not documented", p.ImportPath, what)
			}
		}
		checkFuncs := func(prefix string, funcs []*doc.Func) {
			for _, f := range funcs {
				check(prefix+f.Name, f.Doc)
			}
		}
		checkFuncs("", d.Funcs)
		checkValues(check, d.Consts)
		checkValues(check, d.Vars)
		for _, typ := range d.Types {
			check(typ.Name, typ.Doc+groupComment(typ.Decl, typ.Name))
			checkFuncs("", typ.Funcs)
			checkValues(check, typ.Consts)
			checkValues(check, typ.Vars)
			for _, m := range typ.Methods {
				if m.Name != "Error" && m.Name != "Unwrap" { // of the interface that errors implement
					check(typ.Name+"."+m.Name, m.Doc)
				}
			}
		}
	}
	if names < 150 {
		t.Errorf("only %d names were checked", names)
	}
}

// checkValues checks constants and variables: each, or its group, is documented.
func checkValues(check func(what, comment string), values []*doc.Value) {
	for _, v := range values {
		for _, spec := range v.Decl.Specs {
			s := spec.(*ast.ValueSpec)
			for _, id := range s.Names {
				if id.IsExported() {
					check(id.Name, v.Doc+s.Doc.Text()+s.Comment.Text())
				}
			}
		}
	}
}

// groupComment returns the comment of one type in a group of declarations.
func groupComment(decl *ast.GenDecl, name string) string {
	text := decl.Doc.Text()
	for _, spec := range decl.Specs {
		if s, ok := spec.(*ast.TypeSpec); ok && s.Name.Name == name {
			text += s.Doc.Text() + s.Comment.Text()
		}
	}
	return text
}

func documentation(t *testing.T, dir, importPath string) *doc.Package {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	d, err := doc.NewFromFiles(fset, parsed, importPath)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
