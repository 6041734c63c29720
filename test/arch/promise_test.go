package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promisedPackages have names that stay: a program that imports no other package of goccl compiles
// with every later version.
var promisedPackages = []string{"dist", "ddp"}

const promiseFile = "testdata/promise.txt"

// TestPromise proves that nothing of promiseFile has vanished: functions, types, fields, constants
// and variables of the promised packages, and of types of other packages to which these give names.
// What is new is promised as well, except for methods of interfaces, which programs implement.
//
// After an addition: go test ./test/arch -run 'TestExported|TestPromise' -update. It deletes
// nothing.
func TestPromise(t *testing.T) {
	now := promisable(t)
	text, err := os.ReadFile(promiseFile)
	if err != nil {
		t.Fatal(err)
	}
	promised := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	for _, broken := range breaks(promised, now) {
		t.Errorf("programs that use dist and ddp may not compile any more: %s\n(if they all do, correct %s by hand)", broken, promiseFile)
	}

	if *update && !t.Failed() {
		promised = slices.Compact(slices.Sorted(slices.Values(slices.Concat(promised, now))))
		if err := os.WriteFile(promiseFile, []byte(strings.Join(promised, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range now {
		if !slices.Contains(promised, line) {
			t.Errorf("new, and not in %s: %s\nTo add it: go test ./test/arch -run 'TestExported|TestPromise' -update", promiseFile, line)
		}
	}
}

// breaks returns what a list of lines lacks of the promised ones, and methods that an interface has
// besides.
func breaks(promised, now []string) (all []string) {
	known := map[string]bool{} // interfaces
	for _, line := range promised {
		if !slices.Contains(now, line) {
			all = append(all, "gone: "+line)
		}
		if head, _, isMember := strings.Cut(line, ": "); isMember && strings.HasSuffix(head, " interface") {
			known[head] = true
		}
	}
	for _, line := range now {
		if head, _, _ := strings.Cut(line, ": "); known[head] && !slices.Contains(promised, line) {
			all = append(all, "a method that implementations lack: "+line)
		}
	}
	return all
}

// A promise breaks if a line vanishes, and if an interface grows; it does not if anything else is added.
func TestBreaks(t *testing.T) {
	promised := []string{"ddp type Options struct: Name string", "ddp type Hook[T Float] interface: Start()"}
	for more, want := range map[string]int{
		"ddp type Options struct: Depth int":         0,
		"ddp func New()":                             0,
		"ddp type Hook[T Float] interface: Finish()": 1,
	} {
		if got := breaks(promised, append(slices.Clone(promised), more)); len(got) != want {
			t.Errorf("with %q: %q", more, got)
		}
	}
	if got := breaks(promised, promised[1:]); len(got) != 1 {
		t.Errorf("without the first: %q", got)
	}
}

// A declaration is a line of a promise.
type declaration struct {
	typ   string   // that it declares, or whose field or method it is; else ""
	text  string   // with its package
	alias string   // of another package, to which it gives a name: "ccl.Work"; else ""
	names []string // of types that it has, with their packages
}

// promisable returns the exported declarations of the promised packages, a line for each, and those
// of the types of other packages to which these give names, and of their fields and results.
// Communicators are package ccl's.
func promisable(t *testing.T) (lines []string) {
	t.Helper()
	all := map[string][]declaration{} // by the name of the package
	for _, p := range goFiles(t) {
		if name := relative(p.importPath); slices.Contains(promisedPackages, name) || slices.Contains([]string{"ccl", "transport", "ccl/config"}, name) {
			all[path.Base(name)] = declarations(t, path.Base(name), p.files)
		}
	}

	reached := map[string]bool{"ccl.Communicator": true}
	var types []string
	for _, pkg := range promisedPackages {
		for _, d := range all[pkg] {
			lines = append(lines, d.text)
			types = append(types, d.alias)
		}
	}
	for len(types) > 0 {
		typ := types[0]
		types = types[1:]
		if reached[typ] {
			continue
		}
		reached[typ] = true
		pkg, name, _ := strings.Cut(typ, ".")
		for _, d := range all[pkg] {
			if d.typ == name {
				lines = append(lines, d.text)
				types = append(types, d.names...)
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// declarations returns the exported declarations of a package.
func declarations(t *testing.T, pkg string, files []string) (all []declaration) {
	t.Helper()
	add := func(typ, text string, parts ...ast.Node) {
		d := declaration{typ: typ, text: pkg + " " + text}
		for _, part := range parts {
			var text bytes.Buffer
			if err := printer.Fprint(&text, token.NewFileSet(), part); err != nil {
				t.Fatal(err)
			}
			d.text = strings.TrimSuffix(d.text, " ") + " " + strings.Join(strings.Fields(text.String()), " ")
			d.names = append(d.names, typeNames(pkg, part)...)
		}
		all = append(all, d)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, node := range file.Decls {
			switch d := node.(type) {
			case *ast.FuncDecl:
				typ := ""
				if d.Recv != nil {
					if typ = receiver(d); !ast.IsExported(typ) {
						continue
					}
				}
				add(typ, "", &ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(add, d.Tok.String(), spec)
				}
			}
		}
	}
	for i := range all { // alone in their lines
		if m := alias.FindStringSubmatch(all[i].text); m != nil {
			all[i].alias = m[1]
		}
	}
	return all
}

// alias is the end of a declaration that gives a name to one of another package.
var alias = regexp.MustCompile(`= ([a-z]\w*\.[A-Z]\w*)$`)

// addSpec adds the lines of a type, a constant or a variable.
func addSpec(add func(typ, text string, parts ...ast.Node), kind string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for i, name := range s.Names {
			text := kind + " " + name.Name
			switch {
			case s.Type != nil:
				add("", text, s.Type)
			case i < len(s.Values) && isQualified(s.Values[i]):
				add("", text+" =", s.Values[i])
			default:
				add("", text)
			}
		}

	case *ast.TypeSpec:
		head := "type " + s.Name.Name
		if s.TypeParams != nil {
			var params bytes.Buffer
			_ = printer.Fprint(&params, token.NewFileSet(), &ast.FuncType{TypeParams: s.TypeParams, Params: new(ast.FieldList)}) // to memory
			head += strings.TrimSuffix(strings.TrimPrefix(params.String(), "func"), "()")
		}
		members, kind := (*ast.FieldList)(nil), ""
		switch typ := s.Type.(type) {
		case *ast.StructType:
			members, kind = typ.Fields, "struct"
		case *ast.InterfaceType:
			members, kind = typ.Methods, "interface"
		default:
			if s.Assign.IsValid() {
				head += " ="
			}
			add(s.Name.Name, head, s.Type)
			return
		}
		add(s.Name.Name, head+" "+kind)
		for _, field := range members.List {
			for _, name := range field.Names {
				add(s.Name.Name, head+" "+kind+": "+name.Name, field.Type)
			}
			if field.Names == nil {
				add(s.Name.Name, head+" "+kind+":", field.Type)
			}
		}
	}
}

// isQualified reports whether an expression is a name of another package.
func isQualified(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	_, ok = s.X.(*ast.Ident)
	return ok
}

// typeNames returns the exported names in a part of a declaration, with their packages.
func typeNames(pkg string, part ast.Node) (names []string) {
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if isQualified(n) {
				names = append(names, n.X.(*ast.Ident).Name+"."+n.Sel.Name)
			}
			return false
		case *ast.Ident:
			if n.IsExported() {
				names = append(names, pkg+"."+n.Name)
			}
		}
		return true
	})
	return names
}
