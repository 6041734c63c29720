package goccl_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const guide = "docs/guides/writing-an-algorithm.md"

// TestGuide follows docs/guides/writing-an-algorithm.md in a module of its own: it
// writes the files, runs the commands of sh and console blocks one after the other, and
// compares the output of those in console blocks. Times, line numbers and which of several
// ranks failed first may differ.
func TestGuide(t *testing.T) {
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	document := read(t, guide)
	home := t.TempDir()
	mine := filepath.Join(home, "mine") // beside the clone
	write(t, filepath.Join(mine, "README"), "A module of one's own.\n")
	if err := os.Symlink(root, filepath.Join(home, "goccl")); err != nil {
		t.Fatal(err)
	}
	last := map[string]string{} // text of each file
	rewritten, done, commands := "", 0, 0
	for _, f := range fences(document) {
		if m := fileLabel.FindStringSubmatch(f.label); m != nil {
			write(t, filepath.Join(mine, m[1]), f.text)
			last[m[1]] = f.text
		}
		if f.language == "sh" {
			for line := range strings.Lines(f.text) {
				if strings.HasPrefix(line, "go ") { // its output depends on what has been downloaded
					runCommand(t, root, mine, line)
				}
			}
		}
		if f.language != "console" {
			continue
		}
		output := ""
		for line := range strings.Lines(f.text) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				commands++
				output += line + runCommand(t, root, mine, command)
			}
		}
		if !*update && steady(output) != steady(f.text) {
			t.Errorf("the commands print\n%s\nand the guide says\n%s", output, f.text)
		}
		rewritten += document[done:f.end-len(f.text)] + output
		done = f.end
	}
	if *update {
		write(t, guide, rewritten+document[done:])
	}
	if commands < 5 {
		t.Errorf("the guide has %d commands", commands)
	}
	for _, file := range []string{"doubling/doubling.go", "doubling/allreduce.go", "blocked/blocked.go"} {
		if last[file] != read(t, filepath.Join("examples/kernel", file)) {
			t.Errorf("%s is not what examples/kernel has", file)
		}
	}
}

// runCommand runs a command of the go tool and returns what it prints: in the
// clone if it uses the clone's examples, else in the reader's module.
func runCommand(t *testing.T, root, mine, command string) string {
	t.Helper()
	words := strings.Fields(command)
	if words[0] != "go" {
		t.Fatalf("the guide has the command %q, and the test runs the go tool only", command)
	}
	c := exec.Command("go", words[1:]...)
	c.Dir = mine
	if strings.Contains(command, "examples/") {
		c.Dir = root
	}
	c.Env = append(os.Environ(), "GOCCL_CONFIG=", "GOCCL_ALGORITHM=", "GOCCL_TRANSPORT=", "GOCCL_TIMEOUT=", "GOCCL_WORLD_SIZE=")
	out, _ := c.CombinedOutput() // some commands of the guide fail on purpose
	return string(out)
}

var varying = regexp.MustCompile(`\d+\.\d+s?|rank \d+|\(cached\)|\w+\.go:\d+| +`)

// steady removes what differs from run to run.
func steady(output string) string {
	return varying.ReplaceAllStringFunc(output, func(s string) string {
		if strings.TrimSpace(s) == "" {
			return " "
		}
		return "#"
	})
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
