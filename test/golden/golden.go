// Package golden keeps the texts of errors: each table of mistakes has a list of what its rows
// print, in testdata beside the test, so that no text changes unseen.
//
// # Model
//
// A test makes a [List] and adds the error of each row. At its end the lines are compared with
// the file. With -update-errors the file is written instead.
//
// What differs from run to run, such as process ids, lines of source files and temporary
// directories, stands in a line as a word.
package golden

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update-errors", false, "write the lists of error texts")

// List is the error texts of one test. Its methods may be called concurrently.
type List struct {
	mu    sync.Mutex
	lines map[string]bool
}

// Errors makes the list of a test, which is compared with its file when the test ends.
func Errors(t *testing.T) *List {
	t.Helper()
	l := &List{lines: map[string]bool{}}
	t.Cleanup(func() { l.compare(t) })
	return l
}

// Add adds the text of a row's error, once if several ranks have the same.
func (l *List) Add(row string, err error) {
	text := "no error"
	if err != nil {
		text = err.Error()
	}
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.word)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[row+": "+strings.ReplaceAll(text, "\n", "\n    ")] = true
}

// variable is what differs from run to run, and what stands for it.
var variable = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`(?s)\n\ngoroutine \d+ .*?(\n(rank|ranks|\(and) |$)`), "\n\nSTACK$1"},
	{regexp.MustCompile(`\bpid \d+`), "pid N"},
	{regexp.MustCompile(`\.go:\d+`), ".go:N"},
	{regexp.MustCompile(regexp.QuoteMeta(filepath.Clean(os.TempDir())) + `/[^\s:"]*/`), "DIR/"},
	{regexp.MustCompile(`\b0x[0-9a-f]+`), "0xN"},
	{regexp.MustCompile(`\b\d+\.\d{3,}(m|µ|n)?s\b`), "TIME"},
}

func (l *List) compare(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	got := slices.Sorted(maps.Keys(l.lines))
	name := filepath.Join("testdata", "errors."+strings.ReplaceAll(t.Name(), "/", ".")+".txt")

	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}

	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v: run the test with -update-errors", err)
	}

	file := "\n" + string(text)
	for _, line := range got {
		if !strings.Contains(file, "\n"+line+"\n") {
			t.Errorf("%s has no line\n%s\nIf the new text is better, run the test with -update-errors", name, line)
		}
	}

	// A run of some subtests has some of the lines.
	all := len(strings.Join(got, "\n"))+1 == len(text)
	if selected := flag.Lookup("test.run"); !all && !t.Failed() && !strings.Contains(selected.Value.String(), "/") {
		t.Errorf("%s has lines that no row prints any more: run the test with -update-errors", name)
	}
}
