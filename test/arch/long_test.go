package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// flagsOnly lists the tests that look at -short and make the same checks with and without it.
var flagsOnly = map[string]string{
	"ccl/ccltest.TestFailureText":        "a command that it expects repeats the flag",
	"ccl/ccltest.TestSeveralFailures":    "it hands the flag to a process of two checks",
	"ccl/ccltest.TestReplay":             "it hands the flag to processes, whose commands repeat it",
	"ccl/ccltest.TestFuzzSkipsAfterHang": "it hands the flag to a process that fuzzes, which does not look at it",
}

// runByMPI lists the packages that make mpi runs whole: their tests do without an MPI with -short.
var runByMPI = []string{"transport/mpi/internal/abi", "test/mpi"}

// TestLong proves that make long runs every test of which make test, by -short, runs a part: those
// that call testing.Short, or the conformance suite of kernels or transports, in whatever function.
func TestLong(t *testing.T) {
	long := longPattern(t)
	tests := 0
	for dir, files := range testFiles(t) {
		if slices.Contains(runByMPI, dir) {
			continue
		}
		for _, name := range looksAtShort(t, dir, files) {
			tests++
			if !long.MatchString(name) && flagsOnly[dir+"."+name] == "" {
				t.Errorf("%s: %s looks at testing.Short, and the pattern of make long does not name it: add it to LONG or to SHORT in the Makefile", dir, name)
			}
		}
	}
	if tests < 15 {
		t.Errorf("only %d tests look at testing.Short", tests)
	}
}

// longPattern returns the pattern of the tests that make long runs.
func longPattern(t *testing.T) *regexp.Regexp {
	t.Helper()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	values := regexp.MustCompile(`(?m)^(LONG|SHORT) = (.*)$`).FindAllSubmatch(makefile, -1)
	if len(values) != 2 {
		t.Fatalf("the Makefile sets LONG and SHORT %d times", len(values))
	}
	for _, use := range []string{"-short -vet=off -skip '$(LONG)' ./...", "-run '$(LONG)|$(SHORT)' $(LONG_PACKAGES)",
		"TEST_GOCCL_MPI=required $(GO) test -count=1 -vet=off ./" + strings.Join(runByMPI, " ./") + "\n"} {
		if !strings.Contains(string(makefile), use) {
			t.Errorf("the Makefile has no line with %s", use)
		}
	}
	pattern := string(values[0][2]) + "|" + string(values[1][2])
	return regexp.MustCompile(strings.ReplaceAll(pattern, "$$", "$"))
}

// testFiles returns the test files by the directories of their packages.
func testFiles(t *testing.T) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			dir, err := filepath.Rel("../..", filepath.Dir(path))
			if err != nil {
				return err
			}
			files[filepath.ToSlash(dir)] = append(files[filepath.ToSlash(dir)], path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// looksAtShort returns the names of the tests of a package that call testing.Short or a
// conformance suite, themselves or by functions of the package's test files.
func looksAtShort(t *testing.T, dir string, files []string) (tests []string) {
	t.Helper()
	looks := map[string]bool{"testing.Short": true, "ccltest.Test": true, "transporttest.Test": true}
	if dir == "ccl/ccltest" || dir == "transport/transporttest" {
		looks["Test"] = true
	}
	calls := map[string][]string{} // by the name of the function that makes them
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					calls[f.Name.Name] = append(calls[f.Name.Name], calledName(call))
				}
				return true
			})
		}
	}

	for grew := true; grew; {
		grew = false
		for name, called := range calls {
			for _, c := range called {
				if looks[c] && !looks[name] {
					looks[name], grew = true, true
				}
			}
		}
	}
	for name := range calls {
		if looks[name] && strings.HasPrefix(name, "Test") && name != "TestMain" {
			tests = append(tests, name)
		}
	}
	return tests
}

// calledName returns the name of what is called: pkg.Func, Func, or the method's name.
func calledName(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok && (x.Name == "testing" || x.Name == "ccltest" || x.Name == "transporttest") {
			return x.Name + "." + fun.Sel.Name
		}
		return fun.Sel.Name
	}
	return ""
}
