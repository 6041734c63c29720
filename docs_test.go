package goccl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedPrograms runs every complete program in the README and the guides
// and compares what it prints with the text block that follows it.
func TestDocumentedPrograms(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n(?:\n*```text\n(.*?)```)?")
	programs := 0
	for _, file := range append(files, "README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			programs++
			program := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(program, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("go", "run", program).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s\n%s", file, err, m[1], out)
				continue
			}
			if got, want := strings.TrimSpace(string(out)), strings.TrimSpace(m[2]); got != want {
				t.Errorf("%s: the program prints\n%s\nand the document says\n%s", file, got, want)
			}
		}
	}
	if programs < 2 {
		t.Errorf("found %d programs, want the README's two at least", programs)
	}
}
