package arch

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/goccl/goccl"

// A rule lists what the packages of one room may import of this module and of other
// modules. The standard library is always allowed. Patterns are relative to the module's
// root and may end in "/..."; "." is the root package.
type rule struct {
	room    string
	imports []string
	others  []string
	why     string
}

// The first rule whose room matches a package applies.
var rules = []rule{
	{".", nil, nil, "the root package is the manual's first page and the default configuration"},
	{"bytesize", []string{"internal/text"}, nil, "numbers of bytes know nothing of what has them"},
	{"topology", []string{"internal/text"}, nil, "topology is pure arithmetic"},
	{"transport", []string{"internal/failure", "internal/text", "internal/interleave"}, nil, "the contract must not lean on one of its implementations"},
	{"transport/transporttest", []string{"transport", "internal/interleave"}, []string{testify},
		"the suite knows the contract, not a transport"},
	{"transport/mpi/internal/abi", []string{"transport"}, []string{"github.com/ebitengine/purego"},
		"calls of a library know nothing of what is made of them"},
	{"transport/internal/groupsync", []string{"transport", "internal/spin", "internal/memmove", "internal/interleave"}, nil, "the transports' protocol knows their contract"},
	{"transport/internal/packet", []string{"transport", "transport/shm", "transport/internal/groupsync", "internal/flight", "internal/interleave", "internal/text"}, []string{"golang.org/x/sys/unix"},
		"what transports between nodes share works on each node through memory, and knows no wire"},
	{"transport/mpi", []string{"transport", "transport/internal/packet", "transport/mpi/internal/abi"}, nil, "MPI's own, above which all is packets"},
	{"transport/tcp/tls", []string{"internal/handshake"}, nil, "certificates protect connections, of whomever"},
	{"transport/tcp", []string{"transport", "transport/internal/mesh", "transport/internal/packet", "internal/handshake", "internal/launchenv"}, []string{"golang.org/x/sys/unix"}, "sockets, above which all is packets"},
	{"transport/...", []string{"transport", "transport/internal/...", "internal/..."}, []string{"golang.org/x/sys/unix"},
		"a transport moves bytes and knows nothing of collectives"},
	{"ccl/config", []string{".", "ccl", "topology", "transport", "internal/params", "internal/strictyaml", "internal/text"}, nil,
		"configuration stands on the engine, which knows a Selector only"},
	{"ccl/agree", []string{"ccl", "transport"}, nil, "it stands on collectives, and transport writes ranks"},
	{"ccl/ccltest", []string{"ccl", "ccl/config", "ccl/internal/verbs", "topology", "transport", "transport/...", "test/calls", "internal/launchenv", "internal/library", "internal/interleave", "internal/underseeds"}, []string{testify},
		"the suite runs its subject on real transports, and shows its stacks"},
	{"half", []string{"internal/reduce"}, nil, "two types and their conversions, which reduce knows"},
	{"ccl/internal/reducer", []string{"internal/interleave", "transport", "internal/reduce", "internal/memory"}, nil, "it reduces bytes, of whichever call"},
	{"ccl/internal/verbs", []string{"internal/library"}, nil, "it looks for the kernel's line among those of Go and goccl"},
	{"ccl/internal/...", []string{"transport", "internal/failure", "internal/interleave"}, nil, "the engine's parts know neither element types nor communicators"},
	{"ccl", []string{"ccl/internal/...", "bytesize", "half", "topology", "transport", "internal/reduce", "internal/memory", "internal/params", "internal/text", "internal/failure", "internal/flight", "internal/metrics", "internal/library", "internal/interleave"}, nil,
		"the engine knows the transports' contract only, so that it runs on any"},
	{"algorithms", []string{"algorithms/...", "ccl"}, nil, "the built-in algorithms by one import, and nothing else"},
	{"algorithms/mpi", []string{"ccl", "transport"}, nil, "it calls the collectives of a transport"},
	{"algorithms/pairwise", []string{"ccl", "algorithms/direct"}, nil, "its kernels are direct's, in another order"},
	{"algorithms/...", []string{"ccl", "topology", "algorithms/internal/..."}, nil,
		"a kernel has to be one that an outsider could have written"},
	{"partition", []string{"ccl", "ccl/agree", "internal/failure", "internal/object", "internal/rowmajor", "internal/interleave"}, nil, "partitions stand on groups, on any transport"},
	{"partition/partitiontest", []string{"partition", "ccl", "algorithms", "transport", "transport/..."}, nil, "it runs workers on real transports"},
	{"primitive", []string{"partition", "ccl", "ccl/agree", "internal/failure", "internal/memory", "internal/rowmajor"}, nil, "operators move tensors by collectives"},
	{"primitive/primitivetest", []string{"primitive", "partition", "ccl"}, nil, "it checks any author's operator"},
	{"dist/disttest", []string{"dist", "internal/underseeds"}, []string{testify}, "it runs what users' programs run"},
	{"dist", []string{"ccl", "ccl/agree", "ccl/config", "half", "topology", "algorithms", "transport", "transport/...", "internal/failure", "internal/goroutine", "internal/launchenv", "internal/object", "internal/interleave"}, nil,
		"the front door names the concrete parts"},
	{"launch", []string{"transport/shm", "internal/launcher", "internal/launchenv", "internal/jsonfloat"}, nil, "it starts programs that need not use goccl"},
	{"ddp", []string{"dist", "ccl", "ccl/agree", "half", "internal/atomicfile", "internal/failure", "internal/jsonfloat", "internal/interleave", "internal/reduce"}, nil, "a training program could have written it, but for sums of shards in its own memory"},
	{"test/calls", []string{"ccl", "half", "transport", "internal/interleave"}, nil, "its results follow from definitions, not from algorithms"},
	{"test/stress", []string{"ccl", "half", "partition", "primitive", "transport", "internal/rowmajor", "test/calls", "internal/interleave"}, nil, "random programs use what users' programs use, and transport names the errors"},
	{"test/seeds", []string{"dist", "ccl", "ccl/config", "internal/interleave"}, nil, "its tests are programs of users, whose order a seed chooses"},
	{"test/processes", []string{"dist", "ccl", "ccl/config", "ddp", "partition", "primitive", "test/stress", "internal/flight"}, []string{"golang.org/x/sys/unix"}, "its ranks are programs of users"},
	{"test/mpi", []string{"dist", "ccl", "half", "test/stress", "transport/mpi"}, []string{"golang.org/x/sys/unix"}, "its ranks are programs of users"},
	{"test/deploy", []string{"internal/launchenv"}, []string{"gopkg.in/yaml.v3"}, "it reads what the tools of others will read"},
	{"test/golden", nil, nil, "it keeps texts, of whichever package"},
	{"test/fakempi", nil, nil, "it shares nothing with what it checks"},
	{"test/screen", nil, nil, "it knows nothing of who writes"},
	{"test/arch", nil, nil, "it reads the module's source and runs nothing of it"},
	{"test/syncmodel", nil, nil, "a model that used the code would share its mistakes"},
	{"internal/strictyaml", []string{"internal/text"}, []string{"gopkg.in/yaml.v3"}, "files are read by one set of rules"},
	{"internal/params", []string{"bytesize"}, nil, "parameters are fields of any struct"},
	{"internal/underseeds", []string{"internal/interleave", "internal/launchenv"}, nil, "it chooses orders, of whichever program, and says where its goroutines are"},
	{"internal/interleave", nil, []string{"github.com/petermattis/goid"}, "private parts are leaves"},
	{"internal/goroutine", nil, []string{"github.com/petermattis/goid"},
		"private parts are leaves"},
	{"internal/flight", []string{"internal/atomicfile", "internal/text", "internal/userfile"}, nil, "a recorder knows neither collectives nor transports"},
	{"internal/metrics", []string{"internal/flight"}, nil, "it writes what ranks have recorded, of whichever job"},
	{"internal/launchenv", []string{"internal/failure", "internal/library", "internal/userfile"}, nil, "a rank tells its launcher which functions were the program's"},
	{"internal/reduce", nil, []string{"golang.org/x/sys/cpu"}, "private parts are leaves"},
	{"internal/cores", []string{"internal/cgroup"}, []string{"golang.org/x/sys/unix"}, "cores belong to no program"},
	{"internal/launcher", []string{"internal/atomicfile", "internal/cgroup", "internal/cores", "internal/failure", "internal/flight", "internal/handshake", "internal/launchenv", "internal/metrics", "internal/text"}, []string{"golang.org/x/sys/unix", "golang.org/x/term"},
		"a launcher starts any program and reads why its ranks failed, whatever memory they share"},
	{"internal/...", nil, nil, "private parts are leaves"},
	{"cmd/goccl", []string{"algorithms", "cmd/goccl/tool", "transport/mpi", "transport/tcp/tls"}, nil, "the tool with the built-in algorithms, MPI and TLS is nothing more than that"},
	{"cmd/goccl/tool", []string{"dist", "ccl", "ccl/config", "half", "topology", "algorithms", "transport", "transport/...", "internal/cores", "internal/handshake", "internal/launchenv", "internal/launcher", "internal/metrics", "internal/params", "internal/workload", "cmd/goccl/internal/..."},
		[]string{"github.com/alecthomas/kong", "golang.org/x/term"}, "a tool shows what the public rooms know"},
	{"cmd/goccl/internal/inspect", []string{"transport/shm", "internal/flight", "internal/text"}, nil, "it reads what ranks have recorded"},
	{"cmd/goccl/internal/exporter", []string{"internal/atomicfile", "internal/metrics"}, nil, "it shows what it is given"},
	{"cmd/goccl/internal/svg", nil, nil, "a picture knows nothing of what it shows"},
	{"cmd/goccl/internal/timeline", []string{"cmd/goccl/internal/inspect", "cmd/goccl/internal/svg", "internal/flight", "internal/text"}, nil, "it draws what inspect has read"},
	{"cmd/goccl/internal/doctor", []string{"ccl", "ccl/config", "transport/shm", "internal/launchenv", "internal/reduce", "internal/cgroup", "internal/cores", "cmd/goccl/internal/measure"}, []string{"golang.org/x/sys/unix"},
		"the doctor asks those who know"},
	{"cmd/goccl/internal/...", []string{"dist", "ccl", "ccl/config", "half", "topology", "partition", "primitive", "ddp", "internal/atomicfile", "internal/cgroup", "internal/strictyaml", "internal/workload", "cmd/goccl/internal/..."}, nil,
		"what is measured is what programs use"},
	{"examples/transport/arena", []string{"transport", "transport/shm"}, nil, "a transport has to be one that an outsider could have written"},
	{"examples/deploy/goccl", []string{"algorithms", "cmd/goccl/tool"}, nil, "it is the tool, without what needs glibc"},
	{"examples/...", []string{"dist", "ccl", "ccl/config", "half", "topology", "algorithms", "algorithms/...", "partition", "primitive", "ddp", "transport/mpi", "examples/..."}, heavy,
		"an example shows what users can do"},
	{"benchmarks/peers/programs/goccl_mpi", []string{"benchmarks/peers/...", "algorithms", "ccl", "transport", "transport/mpi"}, nil, "it measures a transport's own collectives too"},
	{"benchmarks/...", []string{"benchmarks/...", "dist", "ccl", "ccl/config", "ddp", "half", "internal/workload"}, nil,
		"a benchmark measures what users get"},
}

// Tests may also import their own package and these.
var testRooms = []string{"partition/partitiontest", "primitive/primitivetest", "ccl/config", "ccl/ccltest", "transport/transporttest", "test/stress", "test/fakempi", "test/golden", "test/screen", "algorithms", "algorithms/...", "transport", "transport/..."}

// The tests that are examples, or watch users' programs, may import what those do.
var exampleRooms = map[string][]string{"ccl/agree": {"partition"}, "primitive": {"dist"}, "algorithms/mpi": {"half"}, "algorithms/hierarchical": {"half"}, "cmd/goccl/tool": {"ddp", "internal/flight", "internal/launchenv"},
	"launch": {"dist", "internal/cores"}, "dist/disttest": {"dist", "ddp"}, "examples/ddp": {"launch"}, "transport/mpi": {"ccl"}, "transport/internal/packet": {"ccl"}, "transport/tcp": {"ccl"}, "internal/launcher": {"dist", "ccl", "ddp", "partition", "primitive"}}

const testify = "github.com/stretchr/testify"

const jsonschema = "github.com/santhosh-tekuri/jsonschema/v6" // judges files in tests as editors do

// heavy lists dependencies of examples and tools that users of the library must not get.
var heavy = []string{"gonum.org", "github.com/guptarohit", "github.com/alecthomas", "golang.org/x/term", testify, jsonschema}

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Deps                               []string
}

// TestRooms proves that no package of this module imports upwards.
func TestRooms(t *testing.T) {
	seen := 0
	for _, p := range list(t, "./...") {
		name := relative(p.ImportPath)
		i := slices.IndexFunc(rules, func(r rule) bool { return match(r.room, name) })
		if i < 0 {
			t.Errorf("%s has no rule: add one", p.ImportPath)
			continue
		}
		seen++
		r := rules[i]
		for _, imported := range p.Imports {
			if !r.allows(imported) {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, r.why)
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			inTest := rule{imports: slices.Concat(testRooms, []string{name}, exampleRooms[name]), others: []string{testify, jsonschema}}
			if !r.allows(imported) && !inTest.allows(imported) {
				t.Errorf("a test of %s imports %s: %s", p.ImportPath, imported, r.why)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d packages were checked", seen)
	}
}

// TestLibraryIsLight proves that importing the library brings in no dependency of its
// examples and tools.
func TestLibraryIsLight(t *testing.T) {
	for _, p := range list(t, "./dist", "./ccl") {
		for _, dep := range p.Deps {
			if slices.ContainsFunc(heavy, func(h string) bool { return under(dep, h) }) || under(dep, "github.com/ebitengine/purego") || dep == "crypto/tls" {
				t.Errorf("%s depends on %s", p.ImportPath, dep)
			}
		}
	}
}

// TestYAMLInOneFile proves that one file of the module reads yaml, beside the test of files that are not
// goccl's.
func TestYAMLInOneFile(t *testing.T) {
	var readers []string
	for _, file := range files(t) {
		if imports(t, file, "gopkg.in/yaml.v3") && !strings.Contains(file, "test/deploy/") {
			readers = append(readers, file)
		}
	}
	if len(readers) != 1 {
		t.Errorf("yaml is read in %v, want one file", readers)
	}
}

// TestUnsafeIsNamed proves that unsafe code is in files named after it.
func TestUnsafeIsNamed(t *testing.T) {
	for _, file := range files(t) {
		name := strings.TrimSuffix(strings.TrimSuffix(file, ".go"), "_test")
		if imports(t, file, "unsafe") != strings.HasSuffix(name, "_unsafe") {
			t.Errorf("%s: exactly the files that import unsafe have names that end in _unsafe", file)
		}
	}
}

// files returns the Go files of this module, with tests.
func files(t *testing.T) []string {
	t.Helper()
	const format = `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}` +
		`{{range .TestGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`
	out, err := exec.Command("go", "list", "-f", format, module+"/...").Output()
	if err != nil {
		t.Fatal(explain(err))
	}
	return strings.Fields(string(out))
}

func (r rule) allows(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case !strings.Contains(first, "."):
		return true // the standard library
	case under(imported, module):
		return slices.ContainsFunc(r.imports, func(p string) bool { return match(p, relative(imported)) })
	}
	return slices.ContainsFunc(r.others, func(o string) bool { return under(imported, o) })
}

func relative(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

func match(pattern, name string) bool {
	if room, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(name, room+"/")
	}
	return pattern == name
}

func under(importPath, root string) bool {
	return importPath == root || strings.HasPrefix(importPath, root+"/")
}

func list(t *testing.T, patterns ...string) (pkgs []pkg) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps"}, patterns...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(explain(err))
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

func explain(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return err.Error() + ": " + string(exit.Stderr)
	}
	return err.Error()
}

// TestStatic proves that a program is linked statically, and calls no C, unless it imports transport/mpi.
func TestStatic(t *testing.T) {
	// The tool without MPI, for systems without glibc.
	tool := filepath.Join(t.TempDir(), "main.go")
	source := fmt.Sprintf("package main\n\nimport (\n_ %q\n%q\n)\n\nfunc main() { tool.Main() }\n", module+"/algorithms", module+"/cmd/goccl/tool")
	if err := os.WriteFile(tool, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for program, static := range map[string]bool{module + "/examples/kernel": true, module + "/examples/ddp": false, module + "/cmd/goccl": false, tool: true} {
		file := filepath.Join(t.TempDir(), "program")
		cmd := exec.Command("go", "build", "-o", file, program)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		f, err := elf.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := f.ImportedLibraries()
		if err != nil {
			t.Fatal(err)
		}
		if (len(libraries) == 0) != static {
			t.Errorf("%s needs the libraries %v", program, libraries)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Where a document says that a program is static, it says CGO_ENABLED=0: with a C compiler package net makes others dynamic.
func TestStaticInDocuments(t *testing.T) {
	paragraphs := 0
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for paragraph := range strings.SplitSeq(string(text), "\n\n") {
			if regexp.MustCompile(`(?i)\bstatic(ally)?\b`).MatchString(strings.ReplaceAll(paragraph, "static graph", "")) {
				paragraphs++
				if !strings.Contains(paragraph, "CGO_ENABLED=0") {
					t.Errorf("%s: static without CGO_ENABLED=0: %s", path, paragraph)
				}
			}
		}
		return err
	})
	if err != nil || paragraphs == 0 {
		t.Errorf("%d paragraphs, %v", paragraphs, err)
	}
}
