package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/golden"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// All mistakes of a file are reported at once, in the order of the file, and errors.As finds
// each. A mistake does not lead to another one that the author has not made.
func TestAllMistakes(t *testing.T) {
	texts := golden.Errors(t)
	_, err := Parse("ccl.yaml", []byte(`Version: 1
defaults:
  timeout: 60
  transport: udp
algorithms:
  direct:
    params: {x: &a 1, y: *a}
  ring: ring
  auto: {module: direct}
topology: {kind: torus_2d, count: 6}
rules:
  - {bytes: ">1MiB", algorithm: rnig}
  - {algorithm: , size: 4}
  - {collective: [all_reduce, allgather], op: [sum, mean], algorithm: ring}
debug: true
`))
	texts.Add("all", err)
	require.EqualError(t, err, `ccl.yaml has 16 mistakes:
ccl.yaml:1:1: "Version": unknown key (did you mean version?); known keys: algorithms, defaults, rules, topology, version
ccl.yaml:3:12: defaults.timeout: want a duration with its unit, such as 500ms, 60s or 5m, or none; got the number 60
ccl.yaml:4:14: defaults.transport: unknown transport "udp"; use one of auto, shm, local
ccl.yaml:6:3: algorithms.direct: module is missing: the algorithm that the entry is for, such as module: ring
ccl.yaml:7:17: algorithms.direct.params.x: anchors (&a) and aliases are not supported; write the values out
ccl.yaml:7:26: algorithms.direct.params.y: aliases (*a) are not supported; write the values out
ccl.yaml:8:9: algorithms.ring: want a mapping such as {module: ring}, got the text "ring"
ccl.yaml:9:3: algorithms.auto: auto cannot be the name of an entry: it means that the rules choose
ccl.yaml:10:11: topology: torus_2d with count=6: count 6 is not a square, and w and h are not given; give both, with w*h = 6, for example w=3 h=2
ccl.yaml:12:13: rules[1].bytes: ">1MiB" is not a range: write "1MiB-" for 1MiB and more, "1048577-" for more than 1MiB
ccl.yaml:12:33: rules[1].algorithm: there is no entry "rnig" in algorithms (did you mean ring?); entries: direct, ring
ccl.yaml:13:17: rules[2].algorithm: there is no value; give one, or remove the key
ccl.yaml:13:19: rules[2].size: unknown key (did you mean bytes?); known keys: algorithm, bytes, collective, dtype, nodes, op, ranks
ccl.yaml:14:31: rules[3].collective[2]: unknown collective "allgather" (did you mean all_gather?); use one of all_reduce, reduce, reduce_scatter, all_gather, broadcast, gather, scatter, all_to_all, scan, exscan
ccl.yaml:14:53: rules[3].op[2]: unknown op "mean" (did you mean avg?); use one of sum, avg, product, min, max, band, bor, bxor, land, lor, lxor
ccl.yaml:15:1: debug: unknown key; known keys: algorithms, defaults, rules, topology, version`)

	all, ok := errors.AsType[Errors](err)
	require.True(t, ok)
	require.Len(t, all, 16)
	first, ok := errors.AsType[*Error](err)
	require.True(t, ok)
	require.Equal(t, all[0], first)
	for _, mistake := range all {
		require.ErrorIs(t, err, mistake)
		require.Positive(t, mistake.Column)
	}
}

// The text of very many mistakes ends with their number.
func TestManyMistakes(t *testing.T) {
	_, err := Parse("ccl.yaml", []byte("version: 1\nrules:\n"+strings.Repeat("  - {sizes: 4, algorithm: 4}\n", 200)))
	require.True(t, strings.HasPrefix(err.Error(), "ccl.yaml has 400 mistakes:\nccl.yaml:3:6: "))
	require.True(t, strings.HasSuffix(err.Error(), "\nand 380 more"))
	require.Equal(t, 21, strings.Count(err.Error(), "\n"))
	all, _ := errors.AsType[Errors](err)
	require.Len(t, all, 400)
}

// Resolve reports all mistakes that it can find at once, too.
func TestAllMistakesOfModulesAndRules(t *testing.T) {
	_, err := tryResolve(t, `version: 1
algorithms:
  a: {module: plian}
  b: {module: fancy, params: {depht: 1, fast: 1}}
  c: {module: plain, params: {}}
rules: [{algorithm: a}]
`, Request{})
	all, ok := errors.AsType[Errors](err)
	require.True(t, ok)
	require.Equal(t, []string{"algorithms.a.module", "algorithms.b.params.depht", "algorithms.b.params.fast", "algorithms.c.params"}, keys(all))

	_, err = tryResolve(t, entriesOfRules+`  - {bytes: 1KiB-, algorithm: plain}
  - {bytes: 1MiB-, algorithm: other}
  - {collective: [all_reduce, gather, scatter], algorithm: reducer}
  - {ranks: [2, 4], bytes: 4KiB, algorithm: other}
`, Request{})
	all, ok = errors.AsType[Errors](err)
	require.True(t, ok)
	require.Equal(t, []string{"rules[2]", "rules[3].algorithm", "rules[4]"}, keys(all))
	require.EqualError(t, all[1], "ccl.yaml:6:60: rules[3].algorithm: algorithm ring (entry reducer) has no kernel for [gather, scatter]")

	_, err = parse(t, "version: 1\n").WithEnvironment(func(name string) string {
		return map[string]string{"GOCCL_TIMEOUT": "60", "GOCCL_DEBUG": "perhaps"}[name]
	})
	require.EqualError(t, err, `environment has 2 mistakes:
environment: GOCCL_TIMEOUT: want a duration with its unit, such as 500ms, 60s or 5m, or none; got the text "60"
environment: GOCCL_DEBUG: "perhaps" is neither true nor false`)
}

func keys(all Errors) (keys []string) {
	for _, mistake := range all {
		keys = append(keys, mistake.Key)
	}
	return keys
}

// A notation of ranges that is not ccl.yaml's leads to the one that is.
func TestMisspeltRanges(t *testing.T) {
	texts := golden.Errors(t)
	for text, says := range map[string]string{
		">1MiB":          `write "1MiB-" for 1MiB and more, "1048577-" for more than 1MiB`,
		">= 1MiB":        `write "1MiB-" for 1MiB and more`,
		"=>1M":           `write "1MiB-" for 1MiB and more`,
		"<1MiB":          `write "-1MiB" for 1MiB and less, "-1048575" for less than 1MiB`,
		"<0":             `write "-0" for 0 and less`,
		"<=1MiB":         `write "-1MiB" for 1MiB and less`,
		"==1MiB":         "write 1MiB",
		"4MiB+":          `write "4MiB-"`,
		"1KiB..4KiB":     `write "1KiB-4KiB"`,
		"1KiB ... 4KiB":  `write "1KiB-4KiB"`,
		"1KiB:4KiB":      `write "1KiB-4KiB"`,
		"1KiB to 4KiB":   `write "1KiB-4KiB"`,
		"1KiB – 4KiB":    `write "1KiB-4KiB"`,
		"1KiB - 4KiB":    `write "1KiB-4KiB"`,
		"4 KiB - 16 KiB": `write "4KiB-16KiB"`,
	} {
		_, err := parseSpan(text, 0, parseByteSize)
		texts.Add(text, err)
		require.EqualError(t, err, fmt.Sprintf("%q is not a range: %s", text, says))
	}
	_, err := parseSpan("< 4", 1, parseRanks)
	require.EqualError(t, err, `"< 4" is not a range: write "-4" for 4 and less, "-3" for less than 4`)
	for text, says := range map[string]string{
		">many": `">many" is not a size in bytes; `, "+4": `"+4" is not a size in bytes; write 4`, "all": `"all" is not a size in bytes; `,
		"1-2-3": `"2-3" is not a size in bytes; `, "4KB-": `"4KB" is not a size in bytes; KB can mean `,
	} {
		_, err := parseSpan(text, 0, parseByteSize)
		require.ErrorContains(t, err, says)
	}
}

// Keys that other programs have lead to ours.
func TestMisspeltKeys(t *testing.T) {
	texts := golden.Errors(t)
	for text, right := range map[string]string{
		"rules:\n  - {size: 4, algorithm: a}\n":         "bytes",
		"rules:\n  - {message_size: 4, algorithm: a}\n": "bytes",
		"rules:\n  - {type: int8, algorithm: a}\n":      "dtype",
		"rules:\n  - {world_size: 4, algorithm: a}\n":   "ranks",
		"rules:\n  - {hosts: 2, algorithm: a}\n":        "nodes",
		"rules:\n  - {nnodes: 2, algorithm: a}\n":       "nodes",
		"rules:\n  - {node: 2, algorithm: a}\n":         "nodes",
		"rules:\n  - {module: ring}\n":                  "algorithm",
		"entries: {}\n":                                 "algorithms",
		"defaults: {backend: shm}\n":                    "transport",
		"topology: {width: 4}\n":                        "w",
	} {
		_, err := Parse("ccl.yaml", []byte("version: 1\nalgorithms: {a: {module: a}}\n"+text))
		texts.Add(fmt.Sprintf("%q", text), err)
		mistake, ok := errors.AsType[*Error](err)
		require.True(t, ok)
		require.Contains(t, err.Error(), "(did you mean "+right+"?)", mistake)
		_, more := errors.AsType[Errors](err)
		require.False(t, more, err)
	}
}

// A list matches each of its values, and nothing else; its order does not matter.
func TestLists(t *testing.T) {
	s := resolve(t, entriesOfRules+`  - {collective: [reduce, all_reduce], dtype: [int32, float32], op: [max, sum], ranks: [8-, 4, 2], nodes: ["3-", 1], bytes: ["4KiB-", 1K-2K], algorithm: other}
  - {collective: [broadcast], algorithm: other}
  - {algorithm: plain}
`, Request{})
	for _, v := range s.Values() {
		if want, ok := map[string]string{
			"rules[1].collective": "[all_reduce, reduce]", "rules[1].dtype": "[int32, float32]", "rules[1].op": "[sum, max]",
			"rules[1].ranks": "[2, 4, 8-]", "rules[1].nodes": "[1, 3-]", "rules[1].bytes": "[1KiB-2KiB, 4KiB-]", "rules[2].collective": "broadcast",
		}[v.Key]; ok {
			require.Equal(t, want, v.Value)
		}
	}
	all := ccl.Shape{Collective: ccl.CollAllReduce, DType: ccl.Float32, Op: ccl.Sum, Ranks: 4, Bytes: 2 << 10}
	first := func(s *Settings, shape ccl.Shape) Verdict { return s.Explain(shape, "", 0).Rules[0] }
	require.True(t, first(s, all).Chosen)
	for why, change := range map[string]func(*ccl.Shape){
		"collective: [all_reduce, reduce], and the call is scan": func(s *ccl.Shape) { s.Collective = ccl.CollScan },
		"dtype: [int32, float32], and the call has int64":        func(s *ccl.Shape) { s.DType = ccl.Int64 },
		"op: [sum, max], and the call has min":                   func(s *ccl.Shape) { s.Op = ccl.Min },
		"ranks: [2, 4, 8-], and the group has 3":                 func(s *ccl.Shape) { s.Ranks = 3 },
		"nodes: [1, 3-], and the group is on 2":                  func(s *ccl.Shape) { s.Nodes = 2 },
		"bytes: [1KiB-2KiB, 4KiB-], and the call has 3KiB":       func(s *ccl.Shape) { s.Bytes = 3 << 10 },
	} {
		shape := all
		change(&shape)
		require.Equal(t, why, first(s, shape).Why)
	}
	again := resolve(t, entriesOfRules+`  - {collective: [all_reduce, reduce], dtype: [float32, int32], op: [sum, max], ranks: [2, 4, 8-], nodes: [1-1, "3-"], bytes: [1024-2048, "4096-"], algorithm: other}
  - {collective: broadcast, algorithm: other}
  - {algorithm: plain}
`, Request{})
	require.Equal(t, s.Agreement(), again.Agreement())
}

func TestListErrors(t *testing.T) {
	texts := golden.Errors(t)
	for fields, want := range map[string]string{
		"collective: []":                               "3:18: rules[1].collective: the list is empty; give a value, or remove the key",
		"op: [sum, max, sum]":                          "3:21: rules[1].op[3]: sum stands in the list twice",
		`ranks: ["1-4", 3]`:                            "3:13: rules[1].ranks: the ranges 1-4 and 3 overlap",
		`nodes: [1, "-2"]`:                             "3:13: rules[1].nodes: the ranges 1 and 1-2 overlap",
		`bytes: ["4KiB-", 1KiB, "1MiB-"]`:              "3:13: rules[1].bytes: the ranges 4KiB- and 1MiB- overlap",
		"ranks: 2,4":                                   "3:15: rules[1].4: want a word as key, got the number 4; several values of one key are a list: [a, b]",
		`collective: "all_reduce, reduce"`:             "3:18: rules[1].collective: several values are a list: write [all_reduce, reduce]",
		"collective: [all_reduce, broadcast], op: sum": "3:5: rules[1]: broadcast takes no op: the rule would never match it",
		"collective: all_reduce, reduce":               "3:30: rules[1].reduce: unknown key; known keys: algorithm, bytes, collective, dtype, nodes, op, ranks; several values of one key are a list: [a, b]",
		"collective: [all_reduce, barrier]":            "3:31: rules[1].collective[2]: the engine executes barriers itself: they need no algorithm and no rule",
	} {
		_, err := Parse("ccl.yaml", []byte("version: 1\nrules:\n  - {"+fields+", algorithm: a}\nalgorithms: {a: {module: a}}\n"))
		texts.Add(fields, err)
		require.EqualError(t, err, "ccl.yaml:"+want)
	}

	// Ranges cost time, in lists as well.
	list := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint(2*i+1))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	const format = entriesOfRules + "  - {bytes: %s, algorithm: plain}\n  - {ranks: %s, algorithm: other}\n  - {algorithm: plain}\n"
	resolve(t, fmt.Sprintf(format, list(127), list(128)), Request{}).Findings()
	_, err := Parse("ccl.yaml", []byte(fmt.Sprintf(format, list(128), list(128))))
	require.EqualError(t, err, "ccl.yaml:6:5: rules[3]: the file has more than 256 rules (each range in a list counts)")
	_, err = Parse("ccl.yaml", []byte(entriesOfRules+"  - {bytes: "+list(17)+", ranks: "+list(16)+", algorithm: plain}\n  - {algorithm: plain}\n"))
	require.EqualError(t, err, "ccl.yaml:4:5: rules[1]: the file has more than 256 rules (each range in a list counts)")
	_, err = Parse("ccl.yaml", []byte(entriesOfRules+"  - {bytes: "+list(13)+", ranks: "+list(4)+", nodes: "+list(5)+", algorithm: plain}\n"))
	require.EqualError(t, err, "ccl.yaml:4:5: rules[1]: the file has more than 256 rules (each range in a list counts)")
	_, err = Parse("ccl.yaml", []byte(entriesOfRules+strings.Repeat("  - {bytes: 1KiB-, ranks: 4, nodes: 2-, algorithm: plain}\n", 256)))
	require.NoError(t, err, "the same range counts once")
}

// Check reports at once what Parse finds and what Resolve finds.
func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOCCL_CONFIG", "")
	require.Equal(t, Checked{File: "built-in ccl.yaml"}, Check("", testRegistry()))

	require.NoError(t, os.WriteFile("ccl.yaml", []byte(`version: 1
defaults: {timeout: 5}
algorithms:
  a: {module: plian}
  b: {module: fancy, params: {depht: 1, depth: "1"}}
  c: {modul: fancy, params: {depht: 1}}
rules: [{algorithm: d}]
`), 0o600))
	c := Check("", testRegistry())
	require.Equal(t, "ccl.yaml", c.File)
	require.Empty(t, c.Warnings)
	all, ok := errors.AsType[Errors](c.Err)
	require.True(t, ok)
	require.Equal(t, []string{
		"defaults.timeout", "algorithms.a.module", "algorithms.b.params.depht", "algorithms.b.params.depth", "algorithms.c.modul", "rules[1].algorithm",
	}, keys(all))

	path := filepath.Join(t.TempDir(), "mine.yaml")
	require.Equal(t, path, Check(path, nil).File)
	require.ErrorContains(t, Check(path, nil).Err, "no such file")
	t.Setenv("GOCCL_CONFIG", path)
	require.Equal(t, path, Check("", nil).File)
	require.ErrorContains(t, Check("", nil).Err, "GOCCL_CONFIG names this file")
	for _, c := range []struct {
		text     string
		warnings []string
	}{
		{anyRule, nil},
		{"algorithms: {plain: {module: plain}, ring: {module: ring}}\nrules: [{algorithm: plain}]\n", nil},
		{"algorithms: {plain: {module: plain}, other: {module: plain}, ring: {module: ring, params: {}}}\nrules: [{algorithm: plain}]\n", []string{
			"2: neither a rule nor defaults.algorithm names the entry other: only an option or GOCCL_ALGORITHM can choose it",
			"2: neither a rule nor defaults.algorithm names the entry ring: only an option or GOCCL_ALGORITHM can choose it"}},
		{"algorithms: {ring: {module: ring}}\nrules: [{algorithm: ring}]\n", []string{
			"3: no rule matches reduce (float32, sum, 0 bytes, 1 ranks), for example: such calls fail; end the rules with one that has an algorithm only"}},
		{"defaults: {algorithm: plain}\n" + anyRule, []string{"4: the rules are not in use: defaults.algorithm is plain (" + path + ":2)"}},

		// Whatever number of ranks the file asks for.
		{"algorithms: {a: {module: plain, world_size: 7}}\nrules: [{algorithm: a}]\n", nil},
		{"algorithms: {a: {module: plain, world_size: 7}}\ndefaults: {algorithm: a}\n", nil},
		{"topology: {kind: torus_2d, w: 3, h: 2}\n" + anyRule, nil},
		{"topology: {kind: torus_2d}\n" + anyRule, nil},
		{"defaults: {world_size: 5}\n" + anyRule, nil},
	} {
		require.NoError(t, os.WriteFile(path, []byte("version: 1\n"+c.text), 0o600))
		got := Check(path, testRegistry())
		require.NoError(t, got.Err)
		var warnings []string
		for _, w := range got.Warnings {
			warnings = append(warnings, strings.TrimPrefix(w.Origin, path+":")+": "+w.Message)
		}
		require.Equal(t, c.warnings, warnings, c.text)
	}
	require.NoError(t, os.WriteFile(path, []byte("version: 1\n"+anyRule+"topology: {kind: torus_2d, w: 65536, h: 2}\n"), 0o600))
	require.EqualError(t, Check(path, testRegistry()).Err, path+":4:11: topology: w=65536 and h=2 make 131072 ranks: at most 65536 are allowed")
}
