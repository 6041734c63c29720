package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The limits of a file that a stranger reads once.
const (
	maxCommentWidth = 100 // columns of a line that holds a comment only; a tab is one
	maxParagraph    = 12  // lines of a function without a blank line or a comment
	maxFuncLines    = 60  // in the library
	maxFields       = 20  // of a struct in the library
)

// vague lists the names that have meant too many things here: a reader has to learn each of
// them anew in each function.
var vague = []string{"place", "own", "left", "keep", "meet", "wrong", "bring", "some", "one", "fit", "over",
	"said", "tell", "come", "still", "mine"}

// library lists the packages that users' programs link.
var library = []string{"dist", "ccl", "ccl/agree", "ccl/config", "ccl/internal/...", "algorithms", "algorithms/...", "topology",
	"transport", "transport/local", "transport/shm", "transport/mpi", "transport/internal/...", "transport/mpi/internal/...",
	"ddp", "partition", "primitive", "launch", "half", "bytesize", "internal/..."}

// A finding is a place where a file breaks a rule. Its subject is the name that an exception has.
type finding struct {
	rule, subject, text string
}

// exceptions names the findings that stand, as "rule package.Name", each with its reason.
var exceptions = map[string]string{
	"error text internal/object.arrival":         "gob does not say otherwise that it knows no type of that name",
	"error text dist.report":                     "a program's error may have a call's error as text alone, by %v; then it is a consequence of the call",
	"error text internal/strictyaml.syntaxError": "package yaml says by text alone on which line a mistake is",
	"error text test/golden.Add":                 "in a list of texts, words stand for what differs from run to run",
	"error text cmd/goccl/tool.withMeant":        "package kong says that an argument is unexpected by the text of its error alone",
}

// TestHouse reads every Go file that is not a test and proves that it keeps the rules of the
// house: names that say what they are, comments of one width, functions with paragraphs, none
// that is too long, small structs, and errors whose texts nobody reads.
func TestHouse(t *testing.T) {
	used := map[string]bool{}
	files := 0
	for _, file := range sourceFiles(t) {
		files++
		pkg := filepath.ToSlash(filepath.Dir(file))
		for _, f := range readFile(t, filepath.Join("../..", file), pkg) {
			switch key := f.rule + " " + f.subject; {
			case exceptions[key] != "":
				used[key] = true
			default:
				t.Errorf("%s", f.text)
			}
		}
	}
	for key := range exceptions {
		if !used[key] {
			t.Errorf("the exception %q excuses nothing: delete it", key)
		}
	}
	if files < 300 {
		t.Errorf("only %d files were read", files)
	}
}

// sourceFiles returns the Go files that are not tests, of all platforms, by their paths from
// the root. Files of testdata and generated files are not read.
func sourceFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "testdata" || len(name) > 2 && name[0] == '.') {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			file, err := filepath.Rel("../..", path)
			if err != nil {
				return err
			}
			files = append(files, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// readFile returns what is found in one file.
func readFile(t *testing.T, path, pkg string) []finding {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if ast.IsGenerated(tree) {
		return nil
	}
	r := &reading{set: set, tree: tree, pkg: pkg, lines: strings.Split(string(source), "\n")}
	r.checkNames()
	r.checkComments()
	r.checkFuncs()
	r.checkErrorTexts()
	if slices.ContainsFunc(library, func(pattern string) bool { return match(pattern, pkg) }) {
		r.checkSizes()
	}
	return r.findings
}

// A reading is one file while its rules are checked.
type reading struct {
	set      *token.FileSet
	tree     *ast.File
	pkg      string
	lines    []string
	findings []finding
}

// report adds a finding at a position.
func (r *reading) report(rule, subject string, at token.Pos, format string, args ...any) {
	p := r.set.Position(at)
	text := fmt.Sprintf("%s:%d: %s: %s", strings.TrimPrefix(p.Filename, "../../"), p.Line, rule, fmt.Sprintf(format, args...))
	r.findings = append(r.findings, finding{rule, r.pkg + "." + subject, text})
}

// line returns the number of a position's line.
func (r *reading) line(at token.Pos) int { return r.set.Position(at).Line }

// checkNames finds identifiers that are vague, where they are declared and where they are used.
func (r *reading) checkNames() {
	ast.Inspect(r.tree, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		lower := strings.ToLower(id.Name[:1]) + id.Name[1:]
		if slices.Contains(vague, lower) && id.Name != "Left" { // a halo, a pair and a tree have a left and a right
			r.report("name", id.Name, id.Pos(), "%s does not say what it is", id.Name)
		}
		return true
	})
}

// checkComments finds comments that are too wide, and trailing ones that need the code before
// them to be a sentence.
func (r *reading) checkComments() {
	for _, group := range r.tree.Comments {
		for _, c := range group.List {
			first := r.set.Position(c.Pos())
			before := strings.TrimSpace(r.lines[first.Line-1][:first.Column-1])
			if before == "" {
				for i, text := range strings.Split(c.Text, "\n") {
					width := len([]rune(text))
					if i == 0 {
						width += first.Column - 1
					}
					if width > maxCommentWidth && !strings.HasPrefix(text, "//go:") {
						r.report("width", "comment", c.Pos(), "the comment has %d columns, at most %d are read at once", width, maxCommentWidth)
					}
				}
				continue
			}
			word, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(c.Text, "//")), " ")
			if slices.Contains([]string{"which", "whose", "what"}, word) {
				r.report("clause", "comment", c.Pos(), "a trailing comment begins with %q: say it as a sentence", word)
			}
		}
	}
}

// checkFuncs finds long stretches of a function without a blank line or a comment. The lines
// of a literal, which is a table, are not counted.
func (r *reading) checkFuncs() {
	quiet := map[int]bool{} // lines that are a comment, blank, or of a table
	for i, line := range r.lines {
		if text := strings.TrimSpace(line); text == "" || strings.HasPrefix(text, "//") {
			quiet[i+1] = true
		}
	}
	for _, group := range r.tree.Comments {
		for line := r.line(group.Pos()); line <= r.line(group.End()); line++ {
			quiet[line] = true
		}
	}
	table := map[int]bool{}
	ast.Inspect(r.tree, func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok {
			for line := r.line(literal.Pos()) + 1; line <= r.line(literal.End()); line++ {
				table[line] = true
			}
		}
		return true
	})
	for _, declaration := range r.tree.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		stretch := 0
		for line := r.line(f.Body.Lbrace) + 1; line < r.line(f.Body.Rbrace); line++ {
			switch {
			case quiet[line]:
				stretch = 0
			case !table[line]:
				stretch++
			}
			if stretch == maxParagraph+1 {
				r.report("paragraph", f.Name.Name, f.Pos(), "%s has more than %d lines without a blank line or a comment before line %d", f.Name.Name, maxParagraph, line)
			}
		}
	}
}

// checkSizes finds functions and structs that are too large for the library.
func (r *reading) checkSizes() {
	ast.Inspect(r.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if lines := r.line(n.End()) - r.line(n.Pos()) + 1; lines > maxFuncLines {
				r.report("function", n.Name.Name, n.Pos(), "%s has %d lines, at most %d are read at once", n.Name.Name, lines, maxFuncLines)
			}
		case *ast.TypeSpec:
			s, ok := n.Type.(*ast.StructType)
			if !ok {
				break
			}
			fields := 0
			for _, field := range s.Fields.List {
				named := slices.DeleteFunc(slices.Clone(field.Names), func(id *ast.Ident) bool { return id.Name == "_" })
				if len(field.Names) == 0 {
					fields++
				}
				fields += len(named)
			}
			if fields > maxFields {
				r.report("struct", n.Name.Name, n.Pos(), "%s has %d fields, at most %d belong together", n.Name.Name, fields, maxFields)
			}
		}
		return true
	})
}

// checkErrorTexts finds code that reads or edits the text of an error: the result of Error(), or
// a variable that holds it, in a call of package strings, in a comparison, or in part.
func (r *reading) checkErrorTexts() {
	for _, declaration := range r.tree.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		texts := errorTexts(f.Body)
		isText := func(e ast.Expr) bool { return isErrorText(e, texts) }
		ast.Inspect(f.Body, func(n ast.Node) bool {
			found := false
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok {
					if p, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"strings", "regexp", "bytes"}, p.Name) {
						found = slices.ContainsFunc(n.Args, isText)
					}
				}
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "len" {
					found = slices.ContainsFunc(n.Args, isText)
				}
			case *ast.BinaryExpr:
				found = n.Op != token.ADD && (isText(n.X) || isText(n.Y))
			case *ast.SliceExpr:
				found = isText(n.X)
			case *ast.IndexExpr:
				found = isText(n.X)
			case *ast.SwitchStmt:
				found = n.Tag != nil && isText(n.Tag)
			}
			if found {
				r.report("error text", f.Name.Name, n.Pos(), "%s reads or edits the text of an error: give the error a field", f.Name.Name)
			}
			return true
		})
	}
}

// errorTexts returns the variables of a function that hold the text of an error.
func errorTexts(body *ast.BlockStmt) map[string]bool {
	texts := map[string]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i, value := range a.Rhs {
				if id, ok := a.Lhs[i].(*ast.Ident); ok && isErrorText(value, nil) {
					texts[id.Name] = true
				}
			}
		}
		return true
	})
	return texts
}

// isErrorText reports whether an expression is the text of an error.
func isErrorText(e ast.Expr, texts map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return texts[e.Name]
	case *ast.ParenExpr:
		return isErrorText(e.X, texts)
	case *ast.CallExpr:
		s, ok := e.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Error" && len(e.Args) == 0
	}
	return false
}
