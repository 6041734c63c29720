package goccl_test

import (
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the guides say is printed")

// fence is a fenced block of a document.
type fence struct {
	language string
	label    string // the line above it that is not empty
	text     string
	end      int // of the text, in the document
}

// fences returns the blocks of a document.
func fences(document string) (all []fence) {
	var open *fence
	label, at := "", 0
	for line := range strings.Lines(document) {
		at += len(line)
		switch words := strings.TrimSpace(line); {
		case open == nil && strings.HasPrefix(line, "```"):
			open = &fence{language: strings.TrimPrefix(words, "```"), label: label}
		case open != nil && words == "```":
			open.end = at - len(line)
			all = append(all, *open)
			open, label = nil, ""
		case open != nil:
			open.text += line
		case words != "":
			label = words
		}
	}
	return all
}

// documents returns all Markdown files of the repository by name.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(file) == ".md" {
			texts[filepath.ToSlash(file)] = read(t, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

var (
	fileLabel    = regexp.MustCompile("^`([a-z_./]+)`:$")         // the block is a file of that name
	excerptLabel = regexp.MustCompile(`^<!-- in ([a-z_./]+) -->`) // the block is a part of one
)

// TestDocumentedCode checks all Go code in the documents. A program is as gofmt
// writes it, is run and must print the text block that follows it. An excerpt must be part of the file that the
// comment above it names. Blocks labelled with a file name are TestGuide's.
func TestDocumentedCode(t *testing.T) {
	programs := 0
	for file, document := range documents(t) {
		all := fences(document)
		for i, f := range all {
			if f.language != "go" || fileLabel.MatchString(f.label) {
				continue
			}
			if m := excerptLabel.FindStringSubmatch(f.label); m != nil {
				source, err := os.ReadFile(m[1])
				if err != nil {
					t.Error(err)
				} else if !strings.Contains(string(source), f.text) {
					t.Errorf("%s: %s does not contain\n%s", file, m[1], f.text)
				}
				continue
			}
			programs++
			if formatted, err := format.Source([]byte(f.text)); err != nil || string(formatted) != f.text {
				t.Errorf("%s: gofmt would change this program (%v):\n%s", file, err, f.text)
			}
			want := ""
			if i+1 < len(all) && all[i+1].language == "text" {
				want = all[i+1].text
			}
			if got := runProgram(t, f.text); strings.TrimSpace(got) != strings.TrimSpace(want) {
				t.Errorf("%s: the program prints\n%s\nand the document says\n%s", file, got, want)
			}
		}
	}
	if programs < 9 {
		t.Errorf("found %d programs, want those of the README, the tutorial and the guides", programs)
	}
}

func runProgram(t *testing.T, source string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "main.go")
	write(t, program, source)
	out, err := exec.Command("go", "run", "-ldflags=-s -w", program).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, source)
	}
	return string(out)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var exampleLink = regexp.MustCompile(`\[([A-Za-z_.]+)\]\((?:\.\./)+(dist/[a-z_]+_test\.go)\)`)

// TestLinkedExamples checks the examples that guides refer to: the link of a function leads
// to the file that has its example.
func TestLinkedExamples(t *testing.T) {
	links := 0
	for file, document := range documents(t) {
		for _, m := range exampleLink.FindAllStringSubmatch(document, -1) {
			links++
			if !strings.Contains(read(t, m[2]), "\nfunc Example"+strings.ReplaceAll(m[1], ".", "_")+"() {") {
				t.Errorf("%s: %s has no example of %s", file, m[2], m[1])
			}
		}
	}
	if links < 30 {
		t.Errorf("found %d links to examples, want those of docs/guides/from-torch.md", links)
	}
}

var (
	code        = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks follows the relative links of all documents: the file must exist, and the
// heading too if the link names one.
func TestLinks(t *testing.T) {
	all := documents(t)
	anchors := func(file string) map[string]bool {
		found := make(map[string]bool)
		for _, m := range heading.FindAllStringSubmatch(all[file], -1) {
			words := punctuation.ReplaceAllString(strings.ToLower(m[1]), "")
			found[strings.ReplaceAll(words, " ", "-")] = true
		}
		return found
	}
	for file, document := range all {
		document = code.ReplaceAllString(document, "")
		for _, m := range link.FindAllStringSubmatch(document, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, anchor, _ := strings.Cut(m[1], "#")
			if target == "" {
				target = file
			} else {
				target = path.Join(path.Dir(file), target)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads to no file", file, m[1])
			} else if anchor != "" && !anchors(target)[anchor] {
				t.Errorf("%s: the link %s leads to no heading", file, m[1])
			}
		}
	}
}

var decision = regexp.MustCompile(`^# (\d{4}): (.+)\n\n## Decision\n`)

// TestDecisions compares the index of the decisions with the heads of their pages: number and title,
// and then what holds today.
func TestDecisions(t *testing.T) {
	files, err := filepath.Glob("docs/inside/adr/[0-9]*.md")
	if err != nil {
		t.Fatal(err)
	}
	index := read(t, "docs/inside/adr/README.md")
	for _, file := range files {
		head := decision.FindStringSubmatch(read(t, file))
		if head == nil {
			t.Errorf("%s does not begin with number, title and decision", file)
			continue
		}
		row := fmt.Sprintf("| [%s](%s) | %s |\n", head[1], filepath.Base(file), head[2])
		if !strings.Contains(index, row) {
			t.Errorf("the index of decisions does not have %s", row)
		}
	}
	if strings.Count(index, "\n| [") != len(files) {
		t.Errorf("the index has another number of decisions than the folder, which has %d", len(files))
	}
}

var (
	frame    = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\| (\\[[^|]+) \\|")
	function = regexp.MustCompile("`(\\w+)`")
	goFile   = regexp.MustCompile(`\]\(([\w./]+\.go)\)`)
)

// TestWalk finds every function of CONTRIBUTING.md's walk through a call in a file of
// its row.
func TestWalk(t *testing.T) {
	rows := frame.FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1)
	for _, row := range rows {
		source := ""
		for _, file := range goFile.FindAllStringSubmatch(row[2], -1) {
			source += read(t, file[1])
		}
		for _, f := range function.FindAllStringSubmatch(row[1], -1) {
			if !regexp.MustCompile(`(?m)^func (\([^)]+\) )?` + f[1] + `[\[(]`).MatchString(source) {
				t.Errorf("CONTRIBUTING.md: no function %s in %s", f[1], row[2])
			}
		}
	}
	if len(rows) < 12 {
		t.Errorf("found %d frames of the walk", len(rows))
	}
}

var fileName = regexp.MustCompile("`([a-z0-9_]+\\.go)`")

// TestArchitectureFiles finds the files that the architecture names.
func TestArchitectureFiles(t *testing.T) {
	for _, m := range fileName.FindAllStringSubmatch(read(t, "docs/inside/architecture.md"), -1) {
		found := false
		for _, folder := range []string{"ccl", "ccl/*", "ccl/internal/*", "dist", "transport", "transport/*", "transport/internal/*", "internal/*"} {
			files, err := filepath.Glob(folder + "/" + m[1])
			found = found || err == nil && len(files) > 0
		}
		if !found {
			t.Errorf("docs/inside/architecture.md names %s, which is in no package", m[1])
		}
	}
}

var (
	environmentName = regexp.MustCompile(`\bGOCCL_[A-Z_]*[A-Z]\b`) // not those of tests, TEST_GOCCL_...
	environmentRow  = regexp.MustCompile("(?m)^\\| `(GOCCL_[A-Z_]+)` \\|")
)

// TestEnvironmentVariables finds every variable that the sources name in the reference, and
// no other.
func TestEnvironmentVariables(t *testing.T) {
	var read, listed []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		read = append(read, environmentName.FindAllString(string(source), -1)...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(read)
	document, err := os.ReadFile("docs/reference/environment.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range environmentRow.FindAllStringSubmatch(string(document), -1) {
		listed = append(listed, m[1])
	}
	if read = slices.Compact(read); !slices.Equal(read, listed) {
		t.Errorf("the sources read %q, docs/reference/environment.md lists %q", read, listed)
	}
}
