package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// `make generate` leaves docs/algorithms.md as it is.
func TestAlgorithmsPage(t *testing.T) {
	page, err := filepath.Abs("../../../docs/algorithms.md")
	require.NoError(t, err)
	alone(t)
	want, err := os.ReadFile(page)
	require.NoError(t, err)
	if is := printed(t, "explain", "--algorithms", "--markdown"); is != string(want) {
		t.Fatal("docs/algorithms.md is not what the code says: make generate")
	}
}

var (
	fileBlock    = regexp.MustCompile("(?s)```yaml\n(# (\\S+\\.yaml)\n.*?)```\n")
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```\n")
)

// TestConfigurationPage runs the commands in the console blocks of
// docs/configuration.md, beside the files that the page shows, and compares what
// they print. A block has commands after "$ ", with variables before them, and
// what each prints.
func TestConfigurationPage(t *testing.T) {
	page, err := filepath.Abs("../../../docs/configuration.md")
	require.NoError(t, err)
	alone(t)
	was, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, m := range fileBlock.FindAllStringSubmatch(string(was), -1) {
		writeFile(t, m[2], m[1])
	}
	commands := 0
	is := consoleBlock.ReplaceAllStringFunc(string(was), func(block string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for line := range strings.Lines(consoleBlock.FindStringSubmatch(block)[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				if commands++; b.Len() > len("```console\n") {
					b.WriteString("\n")
				}
				b.WriteString(line + typed(t, command))
			}
		}
		return b.String() + "```\n"
	})
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(is), 0o600))
		return
	}
	require.Equal(t, string(was), is)
	require.GreaterOrEqual(t, commands, 8)
}

// fromCalls stands for the part of the output that the page leaves out.
const fromCalls = " | sed -n '/^calls/,$p'"

// typed returns what a command line prints, to whichever output.
func typed(t *testing.T, line string) string {
	line, cut := strings.CutSuffix(strings.TrimSpace(line), fromCalls)
	words := strings.Fields(line)
	for ; strings.Contains(words[0], "="); words = words[1:] {
		name, value, _ := strings.Cut(words[0], "=")
		t.Setenv(name, value)
		defer t.Setenv(name, "")
	}
	require.Equal(t, "goccl", words[0])
	var both bytes.Buffer
	run(words[1:], &both, &both)
	if cut {
		_, after, found := strings.Cut(both.String(), "\ncalls")
		require.True(t, found, "%s", both.String())
		return "calls" + after
	}
	return both.String()
}
