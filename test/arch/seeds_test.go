package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// covered are the rooms whose ranks meet by package interleave alone.
var covered = []string{"ccl", "ccl/agree", "ccl/internal/*", "dist", "dist/disttest", "ddp", "partition", "primitive", "transport", "transport/local", "transport/internal/groupsync", "transport/internal/packet", "transport/shm"}

// A goroutine that waits in a way that package interleave does not know keeps all others from going
// on under a seed. These names of the standard library wait, or order goroutines.
var unordered = map[string][]string{
	"sync": nil, "sync/atomic": nil, // all
	"time":    {"After", "AfterFunc", "NewTicker", "NewTimer", "Sleep", "Tick", "Timer"},
	"context": {"AfterFunc", "WithDeadline", "WithTimeout"},
	"runtime": {"GOMAXPROCS", "Gosched", "NumCPU"},
}

// Exceptions by file, with their reasons.
var ordered = map[string]string{
	"ddp/overlap.go":                     "a value of the process, made once: nothing waits in it",
	"ddp/loader.go":                      "batches are loaded beside the ranks: no seed orders them",
	"dist/watch.go":                      "a value of the process, made once: nothing waits in it",
	"dist/spawn.go":                      "the default number of ranks is the machine's",
	"transport/internal/packet/pause.go": "no seed polls without pause",
	"transport/shm/cores_linux.go":       "the cores of this machine are a constant under a seed",
}

// TestSeeds proves that the rooms that seeds cover use nothing that seeds do not order.
func TestSeeds(t *testing.T) {
	for _, room := range covered {
		files, err := filepath.Glob(filepath.Join("..", "..", room, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files: %v", room, err)
		}
		for _, file := range files {
			name, _ := filepath.Rel(filepath.Join("..", ".."), file)
			if strings.HasSuffix(file, "_test.go") || ordered[name] != "" {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			checkOrdered(t, fset, f)
		}
	}
}

func checkOrdered(t *testing.T, fset *token.FileSet, f *ast.File) {
	for _, spec := range f.Imports {
		if path := strings.Trim(spec.Path.Value, `"`); path == "sync" || path == "sync/atomic" {
			t.Errorf("%s imports %s: use internal/interleave", fset.Position(spec.Pos()), path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Errorf("%s starts a goroutine: use interleave.Go", fset.Position(n.Pos()))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(unordered[x.Name], n.Sel.Name) {
				t.Errorf("%s uses %s.%s: use internal/interleave", fset.Position(n.Pos()), x.Name, n.Sel.Name)
			}
		case *ast.SelectStmt:
			if !hasDefault(n) {
				t.Errorf("%s waits for one of several channels: use interleave.First", fset.Position(n.Pos()))
			}
			return false
		case *ast.BlockStmt:
			checkSteps(t, fset, n.List)
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				t.Errorf("%s receives: use interleave.Receive", fset.Position(n.Pos()))
			}
		}
		return true
	})
}

func hasDefault(s *ast.SelectStmt) bool {
	return slices.ContainsFunc(s.Body.List, func(c ast.Stmt) bool { return c.(*ast.CommClause).Comm == nil })
}

// TestWordsAreInlined proves that package interleave costs nothing in a normal build: its words are
// those of sync/atomic, inlined.
func TestWordsAreInlined(t *testing.T) {
	const room = module + "/transport/internal/groupsync"
	out, err := exec.Command("go", "build", "-gcflags="+room+"=-m", "-o", os.DevNull, room).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, text := range []string{"inlining call to atomic.(*Uint64).Load", "inlining call to atomic.(*Bool).Store", "can inline (*State).isInside", "can inline (*Member).await"} {
		if !strings.Contains(string(out), text) {
			t.Errorf("the compiler does not say %q", text)
		}
	}
}

// checkSteps proves that a step comes before a statement that closes a channel, ends a context, looks
// at a channel, or sends to it unless it is full.
func checkSteps(t *testing.T, fset *token.FileSet, list []ast.Stmt) {
	for i, stmt := range list {
		call, isCall := stmt.(*ast.ExprStmt)
		isEnd := isCall && (isCallOf(call.X, "close") || isCallOf(call.X, "cancel"))
		if _, isLook := stmt.(*ast.SelectStmt); !isEnd && !isLook {
			continue
		}
		if i == 0 || !isStep(list[i-1]) {
			t.Errorf("%s ends or looks at what others wait for: call interleave.Step before it", fset.Position(stmt.Pos()))
		}
	}
}

func isCallOf(x ast.Expr, name string) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.Ident)
	return ok && f.Name == name
}

func isStep(s ast.Stmt) bool {
	x, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := x.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "Step"
}
