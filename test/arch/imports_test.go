package arch

import (
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// imports reports whether a Go file imports a package.
func imports(t *testing.T, file, importPath string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range f.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == importPath {
			return true
		}
	}
	return false
}
