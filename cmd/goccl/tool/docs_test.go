package tool

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// `make generate` does not change docs/reference/algorithms.md and docs/reference/types.md.
func TestGeneratedPages(t *testing.T) {
	docs, err := filepath.Abs("../../../docs/reference")
	require.NoError(t, err)
	alone(t)
	for _, name := range []string{"algorithms", "types"} {
		want, err := os.ReadFile(filepath.Join(docs, name+".md"))
		require.NoError(t, err)
		if is := printed(t, "explain", "--"+name, "--markdown"); is != string(want) {
			t.Errorf("docs/reference/%s.md is not what the code says: make generate", name)
		}
	}
}

// TestStoredSchema compares the schema that editors load with the one that the tool prints.
func TestStoredSchema(t *testing.T) {
	stored, err := os.ReadFile("../../../ccl/config/ccl.schema.json")
	require.NoError(t, err)
	if printed(t, "config", "schema") != string(stored) {
		t.Error("ccl/config/ccl.schema.json is not what the code says: make generate")
	}
}

var (
	fileBlock    = regexp.MustCompile("(?s)```yaml\n(# (\\S+\\.yaml)\n.*?)```\n")
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```\n")
)

// TestConfigurationPage runs the commands in the console blocks of
// docs/guides/configuration.md, with the files that the page shows, and compares their
// output.
func TestConfigurationPage(t *testing.T) {
	page, err := filepath.Abs("../../../docs/guides/configuration.md")
	require.NoError(t, err)
	alone(t)
	was, is, commands := rewritten(t, page, func(line string) string { return typed(t, line) })
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(is), 0o600))
		return
	}
	require.Equal(t, was, is)
	require.GreaterOrEqual(t, commands, 8)
}

var measureAsReaders = flag.Bool("benchmarks", false, "with -update: measure what docs/guides/benchmarking.md says is printed")

// TestBenchmarkingPage does the same with docs/guides/benchmarking.md, whose numbers differ
// from run to run. It measures less than a reader does; -benchmarks measures the same.
func TestBenchmarkingPage(t *testing.T) {
	page, err := filepath.Abs("../../../docs/guides/benchmarking.md")
	require.NoError(t, err)
	write := *update && *measureAsReaders
	cores := runtime.GOMAXPROCS(0)
	alone(t)
	t.Setenv(asProgram, "1") // for the ranks that are processes
	if write {
		runtime.GOMAXPROCS(cores)
	}
	was, is, commands := rewritten(t, page, func(line string) string {
		measures := !strings.Contains(line, "--compare") && !strings.Contains(line, "--sweep")
		if measures && !write {
			line = strings.Replace(line, "goccl bench ", "goccl bench "+strings.Join(quick, " ")+" ", 1)
		}
		if !write && strings.Contains(line, "--sweep mine.yaml") {
			text, err := os.ReadFile("mine.yaml")
			require.NoError(t, err)
			writeFile(t, "mine.yaml", strings.Replace(string(text), "time: 50ms", "time: 1ms", 1))
		}
		return typed(t, line)
	})
	if write {
		require.NoError(t, os.WriteFile(page, []byte(is), 0o600))
		return
	}
	require.Equal(t, steady(was), steady(is))
	require.GreaterOrEqual(t, commands, 5)
}

// rewritten returns a page unchanged, and with the output of the commands in its console
// blocks here and now, with the files that the page shows. A block has
// commands after "$ ", with variables before them, each followed by its output.
func rewritten(t *testing.T, page string, output func(line string) string) (was, is string, commands int) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	was = string(text)
	for _, m := range fileBlock.FindAllStringSubmatch(was, -1) {
		writeFile(t, m[2], m[1])
	}
	is = consoleBlock.ReplaceAllStringFunc(was, func(block string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for line := range strings.Lines(consoleBlock.FindStringSubmatch(block)[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				if commands++; b.Len() > len("```console\n") {
					b.WriteString("\n")
				}
				b.WriteString(line + output(command))
			}
		}
		return b.String() + "```\n"
	})
	return was, is, commands
}

// from marks output that the page omits.
var from = regexp.MustCompile(` \| sed -n '/\^([\w#,. ]+)/,\$p'$`)

// typed returns the output of a command line, standard output and error.
func typed(t *testing.T, line string) string {
	line = strings.TrimSpace(line)
	cut := from.FindStringSubmatch(line)
	words := strings.Fields(from.ReplaceAllString(line, ""))
	for ; strings.Contains(words[0], "="); words = words[1:] {
		name, value, _ := strings.Cut(words[0], "=")
		t.Setenv(name, value)
		defer t.Setenv(name, "")
	}
	require.Equal(t, "goccl", words[0])
	var both bytes.Buffer
	run(context.Background(), words[1:], &both, &both)
	if cut != nil {
		_, after, found := strings.Cut(both.String(), "\n"+cut[1])
		require.True(t, found, "%s", both.String())
		return cut[1] + after
	}
	return both.String()
}
