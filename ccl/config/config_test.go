package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/strictyaml"
)

// everything is a configuration in which every key has a value that is not its
// default.
const everything = `version: 1
defaults: {algorithm: fancy, transport: local, timeout: 90s, world_size: 6}
algorithms:
  plain: {module: plain}
  fancy:
    module: fancy
    topology: ring_1d
    world_size: 4
    params: {chunk: 64KiB, depth: 3, fast: true, label: "a b", pause: 5ms}
topology: {kind: ring_1d, count: 8}
rules:
  - {collective: all_reduce, bytes: "16MiB-", ranks: "3-", nodes: "2-", dtype: float32, op: sum, algorithm: fancy}
  - {bytes: 1KiB-16MiB, ranks: 4, algorithm: plain}
  - {algorithm: plain}
`

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("ccl.yaml", []byte(text))
	require.NoError(t, err)
	return c
}

func at(line, column int) origin { return origin{line: line, column: column} }

func TestParseEverything(t *testing.T) {
	c := parse(t, everything)
	require.Equal(t, "ccl.yaml", c.File())
	require.Equal(t, []string{"plain", "fancy"}, c.Entries())
	require.Equal(t, given[string]{"fancy", at(2, 23)}, c.algorithm)
	require.Equal(t, given[string]{"local", at(2, 41)}, c.transport)
	require.Equal(t, given[time.Duration]{90 * time.Second, at(2, 57)}, c.timeout)
	require.Equal(t, given[int]{6, at(2, 74)}, c.worldSize)
	require.Len(t, c.entries, 2)
	require.Equal(t, 5, c.entries[1].line)
	require.Equal(t, given[int]{4, at(8, 17)}, c.entries[1].worldSize)
	require.Equal(t, given[int]{8, at(10, 34)}, c.topology.count)
	require.Len(t, c.rules, 3)
	require.Equal(t, rule{
		origin:     at(12, 5),
		collective: given[[]ccl.Collective]{[]ccl.Collective{ccl.CollAllReduce}, at(12, 18)},
		bytes:      given[[]span[ccl.ByteSize]]{[]span[ccl.ByteSize]{{min: 16 << 20, open: true}}, at(12, 37)},
		ranks:      given[[]span[int]]{[]span[int]{{min: 3, open: true}}, at(12, 54)},
		nodes:      given[[]span[int]]{[]span[int]{{min: 2, open: true}}, at(12, 67)},
		dtype:      given[[]ccl.DType]{[]ccl.DType{ccl.Float32}, at(12, 80)},
		op:         given[[]ccl.Op]{[]ccl.Op{ccl.Sum}, at(12, 93)},
		algorithm:  given[string]{"fancy", at(12, 109)},
	}, c.rules[0])
	require.Equal(t, rule{origin: at(14, 5), algorithm: given[string]{"plain", at(14, 17)}}, c.rules[2])
}

func TestParseTakesWhatIsMeant(t *testing.T) {
	for _, text := range []string{
		"version: 1",
		"{version: 1}",
		"version: 1\n...\n",
		"---\nversion: 1\n",
		"\ufeffversion: 1\r\nrules: []\r\n", // a byte order mark, and Windows' ends of lines
		`{"version": 1, "defaults": {"timeout": "none", "algorithm": "auto"}}`,
		"# größe\nversion: 1\ntopology:\n  count:\n    auto\n",
		"version: 1\ntopology: {kind: torus_2d, count: 6, w: 3, h: 2}",
		"version: 1\ntopology: {kind: torus_2d, count: 4}",
		"version: 1\nalgorithms: {auto_2: {module: m, params: {a: {b: [c]}}}}", // the module judges these
		"version: 1\nalgorithms: {" + strings.Repeat("a", 200) + ": {module: m}}",
		"version: 1\ndefaults: {world_size: 65536}",
	} {
		_, err := Parse("ccl.yaml", []byte(text))
		require.NoError(t, err, "%q", text)
	}
}

// Each mistake is an error with its line, the path of its key and the nearest
// right name.
func TestParseErrors(t *testing.T) {
	texts := golden.Errors(t)
	const v = "version: 1\n"
	rule := func(fields string) string {
		return v + "rules:\n  - {" + fields + ", algorithm: a}\nalgorithms: {a: {module: a}}\n"
	}
	whole := func(got string) string {
		return "want a whole number such as 4, in decimal digits without quotes; got " + got
	}
	for _, c := range []struct{ text, want string }{
		// version
		{"", ": the file is empty; it has to begin with version: 1"},
		{"# only this\n", ": the file is empty; it has to begin with version: 1"},
		{"---\n", ": the file is empty; it has to begin with version: 1"},
		{"defaults: {}\n", ":1:1: version is missing; the file has to begin with version: 1"},
		{"version: 2\n", ":1:10: version: the number 2 is not a known version; it has to be 1"},
		{"version: \"1\"\n", `:1:10: version: the text "1" is not a known version; it has to be 1`},
		{"version: 1.0\n", ":1:10: version: the number 1.0 is not a known version; it has to be 1"},
		{"version: [1]\n", ":1:10: version: a list is not a known version; it has to be 1"},

		// names of keys
		{v + "default: {}\n", ":2:1: default: unknown key (did you mean defaults?); known keys: algorithms, defaults, rules, topology, version"},
		{v + "defaults:\n  timeot: 5s\n", ":3:3: defaults.timeot: unknown key (did you mean timeout?); known keys: algorithm, debug, timeout, transport, world_size"},
		{v + "defaults: {World-Size: 5}\n", `:2:12: defaults."World-Size": unknown key (did you mean world_size?); known keys: algorithm, debug, timeout, transport, world_size`},
		{v + "topology: {size: 4}\n", ":2:12: topology.size: unknown key (did you mean count?); known keys: count, h, kind, w"},
		{v + "algorithms: {a: {module: a}}\nrules:\n  - {algorithm: a}\n  - {byte: 4, algorithm: a}\n", ":5:6: rules[2].byte: unknown key (did you mean bytes?); known keys: algorithm, bytes, collective, dtype, nodes, op, ranks"},
		{v + "algorithms:\n  a:\n    module: a\n    parms: {}\n", ":5:5: algorithms.a.parms: unknown key (did you mean params?); known keys: module, params, topology, world_size"},
		{v + "version: 1\n", ":2:1: version: duplicate key; it stands on line 1 already"},
		{v + "algorithms:\n  a: {module: a}\n  a: {module: b}\n", ":4:3: algorithms.a: duplicate key; it stands on line 3 already"},
		{v + "algorithms: {a: {module: a, params: {x: 1, \"x\": 2}}}\n", ":2:44: algorithms.a.params.x: duplicate key; it stands on line 2 already"},
		{v + "7: x\n", ":2:1: 7: want a word as key, got the number 7"},
		{v + "[a]: x\n", `:2:1: "": want a word as key, got a list`},

		// what YAML has and a configuration does not need
		{v + "defaults: &d {}\n", ":2:11: defaults: anchors (&d) and aliases are not supported; write the values out"},
		{v + "rules: *d\n", ":2: not YAML: unknown anchor 'd' referenced"},
		{v + "rules: *" + strings.Repeat("d", 1000) + "\n", ":2: not YAML: unknown anchor '" + strings.Repeat("d", 44) + "..."},
		{v + "rules: [&r {algorithm: a}]\n", ":2:9: rules[1]: anchors (&r) and aliases are not supported; write the values out"},
		{v + "<<: {a: 1}\n", `:2:1: "<<": merge keys (<<) are not supported; write the values out`},
		{v + "defaults: {<<: {timeout: 5s}}\n", `:2:12: defaults."<<": merge keys (<<) are not supported; write the values out`},
		{v + "defaults: {world_size: !!int \"4\"}\n", ":2:24: defaults.world_size: tags (!!int) are not supported"},
		{v + "defaults: !mine {}\n", ":2:11: defaults: tags (!mine) are not supported"},
		{v + "defaults:\n", ":2:10: defaults: there is no value; give one, or remove the key"},
		{v + "defaults: {timeout: ~}\n", ":2:21: defaults.timeout: there is no value; give one, or remove the key"},
		{v + "rules:\n  -\n", ":3:4: rules[1]: there is no value; give one, or remove the key"},
		{v + "---\n" + v, ":2: a second document begins here; the file has to be one"},

		// not YAML at all: the line is the mistake's, not the enclosing mapping's
		{v + "defaults:\n  timeout: 5s\n world_size: 4\n", ":4: not YAML: did not find expected key (the indentation of the line fits no line above it, or text follows a closing quote or bracket)"},
		{v + "defaults:\n\ttimeout: 5s\n", ":3:1: a tab indents the line; YAML wants spaces: replace each tab by two"},
		{v + "defaults:\n  \ttimeout: 5s\n", ":3:3: a tab indents the line; YAML wants spaces: replace each tab by two"},
		{v + "defaults:\n  timeout: @5s\n", ":3: not YAML: found character that cannot start any token (quote a text that begins with @, `, %, > or |)"},
		{v + "defaults:\n  timeout: 5s\n\tworld_size: 4\n", ":4:1: a tab indents the line; YAML wants spaces: replace each tab by two"},
		{v + "rules:\n  - algorithm: a\n   bytes: 4\ntopology: {}\n", ":4: not YAML: did not find expected '-' indicator (the lines of a list begin with - in the same column)"},
		{v + "topology: {kind: ring_1d, count: 4]\n", ":2: not YAML: did not find expected ',' or '}' (a comma or a closing bracket is missing)"},
		{v + "topology:\n  kind: ring_1d\n    count: 4\n", `:4: not YAML: mapping values are not allowed in this context (the line is indented more than the one above, a ":" above lacks the space behind it, or a text with ": " lacks its quotes)`},
		{v + "defaults: {timeout: \"5s}\nrules: []\n", ":2: not YAML: found unexpected end of stream (a quote is not closed)"},
		{v + "defaults: {timeout: \x01}\n", ":2: not YAML: control characters are not allowed"},
		{v + "defaults:\n  timeout: 5s # \xff\n", ":3: not UTF-8 text"},
		{"\xff\xfev\x00", ":1: not UTF-8 text"},

		// types
		{"- version: 1\n", ":1:1: want a mapping (key: value), got a list"},
		{"version\n", `:1:1: want a mapping (key: value), got the text "version"`},
		{v + "defaults: [timeout]\n", ":2:11: defaults: want a mapping (key: value), got a list"},
		{v + "rules: {algorithm: a}\n", ":2:8: rules: want a list ([a, b], or lines that begin with -), got a mapping"},
		{v + "rules: [a]\n", `:2:9: rules[1]: want a mapping (key: value), got the text "a"`},
		{v + "defaults: {algorithm: 7}\n", ":2:23: defaults.algorithm: want a text, got the number 7; quotes make it one"},
		{v + "defaults: {algorithm: true}\n", ":2:23: defaults.algorithm: want a text, got true; quotes make it one"},
		{v + "defaults: {algorithm: 2001-01-01}\n", ":2:23: defaults.algorithm: want a text, got 2001-01-01; quotes make it one"},

		// numbers
		{v + "defaults: {world_size: \"4\"}\n", ":2:24: defaults.world_size: " + whole(`the text "4"`)},
		{v + "defaults: {world_size: 1e1}\n", ":2:24: defaults.world_size: " + whole("the number 1e1")},
		{v + "defaults: {world_size: 4.0}\n", ":2:24: defaults.world_size: " + whole("the number 4.0")},
		{v + "defaults: {world_size: 010}\n", ":2:24: defaults.world_size: " + whole("the number 010")},
		{v + "defaults: {world_size: 0o10}\n", ":2:24: defaults.world_size: " + whole("the number 0o10")},
		{v + "defaults: {world_size: 0x4}\n", ":2:24: defaults.world_size: " + whole("the number 0x4")},
		{v + "defaults: {world_size: 0b1}\n", ":2:24: defaults.world_size: " + whole("the number 0b1")},
		{v + "defaults: {world_size: 1_000}\n", ":2:24: defaults.world_size: " + whole("the number 1_000")},
		{v + "defaults: {world_size: +4}\n", ":2:24: defaults.world_size: " + whole("the number +4")},
		{v + "defaults: {world_size: true}\n", ":2:24: defaults.world_size: " + whole("true")},
		{v + "defaults: {world_size: [4]}\n", ":2:24: defaults.world_size: " + whole("a list")},
		{v + "defaults: {world_size: 0}\n", ":2:24: defaults.world_size: the number 0 is out of range: from 1 to 65536 are allowed"},
		{v + "defaults: {world_size: -4}\n", ":2:24: defaults.world_size: the number -4 is out of range: from 1 to 65536 are allowed"},
		{v + "topology: {count: 65537}\n", ":2:19: topology.count: the number 65537 is out of range: from 1 to 65536 are allowed"},
		{v + "topology: {count: 99999999999999999999}\n", ":2:19: topology.count: the number 99999999999999999999 is out of range: from 1 to 65536 are allowed"},
		{v + "topology: {count: automatic}\n", `:2:19: topology.count: want auto, or a whole number without quotes; got the text "automatic"`},
		{v + "topology: {count: \"4\"}\n", `:2:19: topology.count: want auto, or a whole number without quotes; got the text "4"`},
		{v + "topology: {count: 4.5}\n", ":2:19: topology.count: " + whole("the number 4.5")},
		{v + "topology: {w: 0}\n", ":2:15: topology.w: the number 0 is out of range: from 1 to 65536 are allowed"},

		// timeouts
		{v + "defaults: {timeout: 5}\n", ":2:21: defaults.timeout: want a duration with its unit, such as 500ms, 60s or 5m, or none; got the number 5"},
		{v + "defaults: {timeout: \"5\"}\n", `:2:21: defaults.timeout: want a duration with its unit, such as 500ms, 60s or 5m, or none; got the text "5"`},
		{v + "defaults: {timeout: 0s}\n", `:2:21: defaults.timeout: "0s" is not more than zero; write none to wait for ever`},
		{v + "defaults: {timeout: -5s}\n", `:2:21: defaults.timeout: "-5s" is not more than zero; write none to wait for ever`},

		// names of things
		{v + "defaults: {transport: SHM}\n", `:2:23: defaults.transport: unknown transport "SHM" (did you mean shm?); use one of auto, shm, local`},
		{v + "defaults: {transport: udp}\n", `:2:23: defaults.transport: unknown transport "udp"; use one of auto, shm, local`},
		{v + "defaults: {transport: 7}\n", ":2:23: defaults.transport: want a text, got the number 7; quotes make it one"},
		{v + "topology: {kind: 7}\n", ":2:18: topology.kind: want a text, got the number 7; quotes make it one"},
		{v + "topology: {kind: ring}\n", `:2:18: topology.kind: unknown kind "ring" (did you mean ring_1d?); use one of ring_1d, torus_2d, mesh_2d_no_wrap`},
		{rule("collective: allreduce"), `:3:18: rules[1].collective: unknown collective "allreduce" (did you mean all_reduce?); use one of all_reduce, reduce, reduce_scatter, all_gather, broadcast, gather, scatter, all_to_all, scan, exscan`},
		{rule("dtype: float23"), `:3:13: rules[1].dtype: unknown dtype "float23" (did you mean float32?); use one of uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64, float16, bfloat16, complex64, complex128, bool`},
		{rule("op: nand"), `:3:10: rules[1].op: unknown op "nand" (did you mean band?); use one of sum, avg, product, min, max, band, bor, bxor, land, lor, lxor`},
		{rule("op: sum, collective: broadcast"), ":3:5: rules[1]: broadcast takes no op: the rule would never match it"},
		{v + "rules:\n  - {op: sum}\n", ":3:5: rules[1]: algorithm is missing: the entry that the rule chooses"},
		{v + "rules:\n  - {algorithm: rign}\nalgorithms:\n  ring: {module: ring}\n", `:3:17: rules[1].algorithm: there is no entry "rign" in algorithms (did you mean ring?); entries: ring`},
		{v + "rules:\n  - {algorithm: auto}\n", `:3:17: rules[1].algorithm: there is no entry "auto" in algorithms; entries: none`},
		{v + "defaults: {algorithm: rign}\nalgorithms: {ring: {module: ring}, direct: {module: direct}}\n", `:2:23: defaults.algorithm: there is no entry "rign" in algorithms (did you mean ring?); entries: ring, direct`},
		{v + "algorithms:\n  auto: {module: a}\n", ":3:3: algorithms.auto: auto cannot be the name of an entry: it means that the rules choose"},
		{v + "algorithms:\n  Ring: {module: a}\n", `:3:3: algorithms."Ring": the name of an entry has only letters a to z, digits and underscores`},
		{v + "algorithms:\n  \"\": {module: a}\n", `:3:3: algorithms."": the name of an entry has only letters a to z, digits and underscores`},
		{v + "algorithms:\n  a:\n    topology: ring_1d\n", ":3:3: algorithms.a: module is missing: the algorithm that the entry is for, such as module: ring"},

		// ranges
		{rule("bytes: 4KB"), `:3:13: rules[1].bytes: "4KB" is not a size in bytes; KB can mean powers of 1000 or 1024: write 4KiB for 1024`},
		{rule("bytes: 1.5MiB"), `:3:13: rules[1].bytes: "1.5MiB" is not a size in bytes; write 1536KiB`},
		{rule("bytes: \"\""), `:3:13: rules[1].bytes: "" is an empty range; write a value, first-last, first- or -last`},
		{rule("bytes: \"-\""), `:3:13: rules[1].bytes: "-" is an empty range; write a value, first-last, first- or -last`},
		{rule("bytes: 16MiB-1KiB"), `:3:13: rules[1].bytes: "16MiB-1KiB" is a reversed range: 16MiB is more than 1KiB`},
		{rule("bytes: 1-2-3"), `:3:13: rules[1].bytes: "2-3" is not a size in bytes; write it like 4096, 64KiB, 1MiB or 2GiB; 64K, 1M and 2G are the same`},
		{rule("bytes: 1025GiB-"), `:3:13: rules[1].bytes: "1025GiB" is out of range: at most 1024GiB is allowed`},
		{rule("bytes: {}"), ":3:13: rules[1].bytes: want a text or a number, got a mapping"},
		{rule("ranks: 0-3"), `:3:13: rules[1].ranks: "0" is out of range: from 1 to 65536 ranks are allowed`},
		{rule("ranks: 3-2"), `:3:13: rules[1].ranks: "3-2" is a reversed range: 3 is more than 2`},
		{rule("ranks: 4KiB"), `:3:13: rules[1].ranks: "4KiB" is not a number of ranks; write it like 4`},
		{rule("ranks: 03-"), `:3:13: rules[1].ranks: "03" is not a number of ranks; write it like 4`},
		{rule("nodes: 0"), `:3:13: rules[1].nodes: "0" is out of range: from 1 to 65535 nodes are allowed`},
		{rule("nodes: 2-65536"), `:3:13: rules[1].nodes: "65536" is out of range: from 1 to 65535 nodes are allowed`},
		{rule("nodes: 3-2"), `:3:13: rules[1].nodes: "3-2" is a reversed range: 3 is more than 2`},
		{rule("nodes: two"), `:3:13: rules[1].nodes: "two" is not a number of nodes; write it like 4`},
		{rule("nodes: true"), ":3:13: rules[1].nodes: want a text or a number, got true"},
		{rule("nodes: 4KiB"), `:3:13: rules[1].nodes: "4KiB" is not a number of nodes; write it like 4`},

		// The extents are checked against the count of the file
		{v + "topology:\n  kind: torus_2d\n  count: 6\n", ":2:1: topology: torus_2d with count=6: count 6 is not a square, and w and h are not given; give both, with w*h = 6, for example w=3 h=2"},
		{v + "topology: {kind: mesh_2d_no_wrap, count: 6, w: 2, h: 2}\n", ":2:11: topology: mesh_2d_no_wrap with count=6 w=2 h=2: w*h is not count; give both, with w*h = 6, for example w=3 h=2"},
		{v + "topology: {count: 6, w: 3, h: 2}\n", ":2:11: topology: ring_1d with count=6 w=3 h=2: a ring has no extents; remove w and h, or choose torus_2d or mesh_2d_no_wrap"},

		// what is long is cut
		{v + "defaults: {transport: " + strings.Repeat("ä", 1000) + "}\n", `:2:23: defaults.transport: unknown transport "` + strings.Repeat("ä", 60) + `..."; use one of auto, shm, local`},
	} {
		config, err := Parse("ccl.yaml", []byte(c.text))
		texts.Add(fmt.Sprintf("%.100q", c.text), err)
		require.EqualError(t, err, "ccl.yaml"+c.want, "%q", c.text)
		require.Nil(t, config)
		require.ErrorAs(t, err, new(*Error))
	}
}

// Hostile files are refused, soon, and in little memory.
func TestParseBombs(t *testing.T) {
	const v = "version: 1\n"
	deep := func(n int) string { return v + "x: " + strings.Repeat("[", n) + strings.Repeat("]", n) }
	bombs := []struct{ name, text, want string }{
		{"long", v + strings.Repeat("#", strictyaml.MaxBytes), "ccl.yaml: the file is longer than 65536 bytes"},
		{"longest", v + "#" + strings.Repeat("x", strictyaml.MaxBytes-len(v)-1), ""},
		{"deep", deep(strictyaml.MaxDepth), "ccl.yaml:2:1: x: unknown key; known keys: algorithms, defaults, rules, topology, version"},
		{"deep parameters", v + "algorithms: {a: {module: m, params: {x: " + strings.Repeat("[", 8) + strings.Repeat("]", 8) + "}}}", "ccl.yaml:2:45: algorithms.a.params.x[1][1][1][1]: nested deeper than 8 levels"},
		{"deepest", deep(strictyaml.MaxDepth - 1), "ccl.yaml:2:1: x: unknown key; known keys: algorithms, defaults, rules, topology, version"},
		{"very deep", deep(9000), "ccl.yaml:2:1: x: unknown key; known keys: algorithms, defaults, rules, topology, version"},
		{"deeper than the parser", deep(20000), "ccl.yaml:2: not YAML: exceeded max depth of 10000"},
		{"wide", v + "rules: [" + strings.Repeat("a,", 5000) + "]", "ccl.yaml:2:8191: rules[4092]: the file has more than 4096 values"},
		{"billion laughs", v + "rules: &a [x,x,x,x,x,x,x,x,x]\ntopology: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\ndefaults: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n", "ccl.yaml:2:8: rules: anchors (&a) and aliases are not supported; write the values out"},
	}
	for _, piece := range []string{
		"{", "- ", "? ", "a: ", "#\n", "\"", "'", "&a ", "*a ", "!a ", "[a,", "{a: ", "-\n", "\n", " ", "a", "%a\n", "---\n", "...\n",
		"|\n", "[#\n", "- #\n", "{? ", "\t", ", ", "a\n\n", "\"a\\\n", "{a: [", "!<", "- - - -\n", "[a]: ", "-\n#\n", "a: b\n  #\n", "\x00", "é",
	} {
		text := strings.Repeat(piece, strictyaml.MaxBytes/len(piece))
		bombs = append(bombs, struct{ name, text, want string }{fmt.Sprintf("many %q", piece), text, "ccl.yaml:"})
	}
	for _, b := range bombs {
		t.Run(b.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse("ccl.yaml", []byte(b.text))
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
			if b.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, b.want)
				require.Less(t, len(err.Error()), 20*300)
			}
			took := time.Hour
			for try := 0; try < 10 && took >= time.Second; try++ { // one can fall into a pause of the machine
				start := time.Now()
				_, _ = Parse("ccl.yaml", []byte(b.text))
				took = min(took, time.Since(start))
			}
			require.Less(t, took, time.Second) // some milliseconds; the rest is for the race detector
		})
	}
}

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		text, canonical string
		in, out         []ccl.ByteSize
	}{
		{"4KiB", "4KiB", []ccl.ByteSize{4096}, []ccl.ByteSize{0, 4095, 4097}},
		{"4096", "4KiB", []ccl.ByteSize{4096}, []ccl.ByteSize{0, 4095, 4097}},
		{"0", "0", []ccl.ByteSize{0}, []ccl.ByteSize{1}},
		{"1KiB-16MiB", "1KiB-16MiB", []ccl.ByteSize{1024, 1 << 20, 16 << 20}, []ccl.ByteSize{0, 1023, 16<<20 + 1}},
		{"16MiB-", "16MiB-", []ccl.ByteSize{16 << 20, 1 << 62}, []ccl.ByteSize{0, 16<<20 - 1}},
		{"-4KiB", "0-4KiB", []ccl.ByteSize{0, 1, 4096}, []ccl.ByteSize{4097}},
		{"0-0", "0", []ccl.ByteSize{0}, []ccl.ByteSize{1}},
	} {
		s, err := parseSpan(c.text, 0, parseByteSize)
		require.NoError(t, err)
		require.Equal(t, c.canonical, s.String())
		for _, v := range c.in {
			require.True(t, s.contains(v), "%d in %s", v, c.text)
		}
		for _, v := range c.out {
			require.False(t, s.contains(v), "%d in %s", v, c.text)
		}
	}
	s, err := parseSpan("-8", 1, parseRanks)
	require.NoError(t, err)
	require.True(t, s.contains(1) && s.contains(8) && !s.contains(9))
	require.Equal(t, "1-8", s.String())
}

// The algorithm's world_size overrides defaults.world_size, which overrides the topology's count.
func TestWorldSizePriority(t *testing.T) {
	const (
		start    = "version: 1\nalgorithms:\n  sized: {module: plain, world_size: 2}\n  free: {module: plain}\n"
		defaults = "defaults: {algorithm: sized, world_size: 4}\n"
		count    = "topology: {count: 8}\n"
	)
	for _, c := range []struct {
		text, algorithm string
		n               int
		origin          string
	}{
		{start + defaults + count, "", 2, "ccl.yaml:3 (algorithms.sized.world_size)"},
		{start + defaults + count, "sized", 2, "ccl.yaml:3 (algorithms.sized.world_size)"},
		{start + defaults + count, "free", 4, "ccl.yaml:5 (defaults.world_size)"},
		{start + defaults + count, "auto", 4, "ccl.yaml:5 (defaults.world_size)"},
		{start + count, "", 8, "ccl.yaml:5 (topology.count)"},
		{start + count, "sized", 2, "ccl.yaml:3 (algorithms.sized.world_size)"},
		{start + "topology: {count: auto}\n", "", 0, ""},
		{start, "free", 0, ""},
	} {
		n, origin, ok := parse(t, c.text).WorldSize(c.algorithm)
		require.Equal(t, c.n, n)
		require.Equal(t, c.origin, origin)
		require.Equal(t, c.n != 0, ok)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my.yaml")
	_, err := Load(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, path+": cannot read the configuration: no such file or directory")

	require.NoError(t, os.WriteFile(path, []byte("version: 3\n"), 0o600))
	_, err = Load(path)
	require.EqualError(t, err, path+":1:10: version: the number 3 is not a known version; it has to be 1")

	require.NoError(t, os.WriteFile(path, []byte(everything), 0o600))
	c, err := Load(path)
	require.NoError(t, err)
	require.Equal(t, path, c.File())

	require.NoError(t, os.Truncate(path, 1<<30)) // a hole; no more is read than is needed
	_, err = Load(path)
	require.EqualError(t, err, path+": the file is longer than 65536 bytes")

	_, err = Load(t.TempDir())
	require.ErrorAs(t, err, new(*Error))
	require.ErrorContains(t, err, "is a directory")
}

// The order of the look-up: GOCCL_CONFIG, ./ccl.yaml, the built-in file.
func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOCCL_CONFIG", "")

	c, err := Find()
	require.NoError(t, err)
	require.Equal(t, "built-in ccl.yaml", c.File())

	require.NoError(t, os.WriteFile("ccl.yaml", []byte("version: 1\n"), 0o600))
	c, err = Find()
	require.NoError(t, err)
	require.Equal(t, "ccl.yaml", c.File())

	require.NoError(t, os.WriteFile("other.yaml", []byte("version: 1\n"), 0o600))
	t.Setenv("GOCCL_CONFIG", "other.yaml")
	c, err = Find()
	require.NoError(t, err)
	require.Equal(t, "other.yaml", c.File())

	t.Setenv("GOCCL_CONFIG", "missing.yaml")
	_, err = Find()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "missing.yaml: cannot read the configuration: no such file or directory; GOCCL_CONFIG names this file: correct or unset it")

	// A mistake in ./ccl.yaml is not a reason to look further.
	t.Setenv("GOCCL_CONFIG", "")
	require.NoError(t, os.WriteFile("ccl.yaml", []byte("version: 2\n"), 0o600))
	_, err = Find()
	require.ErrorContains(t, err, "ccl.yaml:1:10: version")
}

func TestDefault(t *testing.T) {
	c := Default()
	require.Same(t, c, Default())
	_, _, ok := c.WorldSize("")
	require.False(t, ok, "the built-in file takes any number of ranks")

	// The examples in its comments are right, too.
	examples := 0
	for i, line := range strings.Split(goccl.DefaultConfig(), "\n") {
		example, isExample := strings.CutPrefix(line, "  # ")
		if !isExample || strings.HasPrefix(example, "w:") || strings.HasPrefix(example, "h:") {
			continue // w and h belong together, and to another kind
		}
		examples++
		lines := strings.Split(goccl.DefaultConfig(), "\n")
		lines[i] = "  " + example
		_, err := Parse("ccl.yaml", []byte(strings.Join(lines, "\n")))
		require.NoError(t, err, "%s", line)
	}
	require.Equal(t, 3, examples)
	grid := strings.NewReplacer("# w:", "w:", "# h:", "h:", "kind: ring_1d ", "kind: torus_2d ").Replace(goccl.DefaultConfig())
	c = parse(t, grid)
	require.Equal(t, 3, c.topology.w.value)
	require.Equal(t, 2, c.topology.h.value)
}

func TestConfigErrorUnwraps(t *testing.T) {
	_, err := Parse("ccl.yaml", []byte("version: 1\ntopology: {kind: torus_2d, count: 6}\n"))
	require.Error(t, errors.Unwrap(err), "the *topology.ExtentsError")
}
