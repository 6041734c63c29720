package config

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/transport"
)

var lineBreak = regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]") // YAML's

// FuzzParse: whatever the text, there is a configuration or mistakes, each an *Error
// with a line of the file, soon, and no panic. A configuration resolves or fails
// in the same manner; the schema accepts what resolves.
func FuzzParse(f *testing.F) {
	f.Add([]byte(goccl.DefaultConfig()))
	for _, text := range []string{
		"", "\n", "version: 1", "version: 1\n---\n", "\ufeffversion: 1\r\n", "version: \"1\"\n", "{version: 1, rules: []}",
		everything,
		"version: 1\ntopology: {kind: torus_2d, count: 6, w: 3, h: 2}\n",
		"version: 1\nx: &a [*a]\n", "<<: {a: 1}\n", "? [a]\n: b\n", "a: !!int \"4\"\n", "a: |\n  b\n", "'a\n", "{[", "- - -\n",
		"version: 1\ndefaults: {world_size: 1e1}\n", "version: 1\ndefaults: {world_size: 010}\n",
		"version: 1\ndefaults: {world_size: 4.0}\n", "version: 1\ndefaults: {world_size: \"4\"}\n",
		"version: 1\ndefaults: {world_size: 0x4}\n", "version: 1\ntopology: {count: .inf}\n",
		"version: 1\nx: " + strings.Repeat("[", 50) + strings.Repeat("]", 50),
		entriesOfRules + "  - {collective: [reduce, all_reduce], bytes: [1K, 2k-3K], ranks: [2, '4-'], nodes: [1, '3-'], dtype: [int8], op: [max], algorithm: plain}\n  - {algorithm: other}\n",
		entriesOfRules + "  - {bytes: '>1MiB', size: [], algorithm: a, op: mean, }\n", "version: 1\nalgorithms: {a: b, c}\n",
		entriesOfRules + "  - {bytes: 1KiB-, algorithm: plain}\n  - {bytes: 2KiB, ranks: 2-3, op: max, algorithm: other}\n",
		entriesOfRules + "  - {nodes: 2-, algorithm: plain}\n  - {ranks: 1-2, nodes: 2, algorithm: other}\n  - {nodes: 0, hosts: 2, algorithm: a}\n",
		"#\n- - a\n#\n  # b\n - c\n", "a:\n  - b\n #c\n  d: e\n#f\n", "- #\n \n  - ? a\n    # b\n   : c\n",
	} {
		f.Add([]byte(text))
	}
	registry := testRegistry()
	schema := compiled(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = time.Second // ordinary files take a few milliseconds
		var c *Config
		var err error
		took := limit + 1
		for try := 0; try < 5 && took > limit; try++ { // one try can fall into a pause of the machine
			start := time.Now()
			c, err = Parse("fuzz.yaml", data)
			took = time.Since(start)
		}
		require.LessOrEqual(t, took, limit)
		if err == nil {
			var s *Settings
			if s, err = c.Resolve(Request{Registry: registry, Ranks: 4}); err == nil {
				s.Findings()
				require.NoError(t, validate(t, schema, string(data)))
			}
		}
		if err == nil || errors.As(err, new(*transport.MissingConfigurationError)) {
			return
		}
		require.Less(t, len(err.Error()), 20*2000)
		all, several := errors.AsType[Errors](err)
		if !several {
			var e *Error
			require.ErrorAs(t, err, &e)
			all = Errors{e}
		}
		for i, e := range all {
			require.NotEmpty(t, e.Message)
			require.LessOrEqual(t, e.Line, 1+len(lineBreak.FindAll(data, -1)))
			require.Less(t, len(e.Error()), 3000, "messages quote no more than they need")
			wholeFile := strings.Contains(e.Message, "file is")
			require.True(t, e.Line > 0 || wholeFile, "no line: %v", e)
			require.True(t, i == 0 || all[i-1].Line <= e.Line, "in the file's order: %v", err)
		}
	})
}
