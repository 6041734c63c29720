package config

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/strictyaml"
)

// compiled returns the schema for the test's modules; that also checks it against the schema of
// schemas.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	text, err := Schema(testRegistry())
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("ccl.schema.json", document))
	schema, err := c.Compile("ccl.schema.json")
	require.NoError(t, err)
	return schema
}

// validate returns what the schema says of a file, as an editor would.
func validate(t testing.TB, schema *jsonschema.Schema, text string) error {
	t.Helper()
	root, err := strictyaml.Parse([]byte(text), func(_, _ int, _, message string) error { return &Error{Message: message} })
	require.NoError(t, err)
	return schema.Validate(plain(t, root))
}

// plain returns a value as a JSON reader does.
func plain(t testing.TB, n strictyaml.Node) any {
	t.Helper()
	switch {
	case n.IsMapping():
		all := map[string]any{}
		require.NoError(t, n.Each(func(v strictyaml.Node, name string) error {
			all[name] = plain(t, v)
			return nil
		}))
		return all
	case n.IsList():
		all := []any{}
		require.NoError(t, n.Elements(func(v strictyaml.Node) error {
			all = append(all, plain(t, v))
			return nil
		}))
		return all
	case n.IsNumber():
		return json.Number(n.Value())
	case n.IsText():
		return n.Value()
	}
	truth, err := n.Bool()
	require.NoError(t, err)
	return truth
}

// The schema accepts what Parse and Resolve accept.
func TestSchemaAccepts(t *testing.T) {
	schema := compiled(t)
	files := []string{
		goccl.DefaultConfig(), everything, "version: 1\n",
		`{"version": 1, "defaults": {"timeout": "none", "algorithm": "auto"}}`,
		"version: 1\ndefaults: {debug: true, timeout: 1h2.5m3s}\n" + anyRule,
		"version: 1\ndefaults: {timeout: 1.5us, transport: shm, world_size: 65536}\n" + anyRule,
		"version: 1\ntopology: {kind: torus_2d, count: 6, w: 3, h: 2}\n" + anyRule,
		"version: 1\ntopology: {count: auto}\n" + anyRule,
		"version: 1\nalgorithms: {mine: {module: of_another_program, params: {anything: [1]}}}\n", // a module that the registry does not know
		"version: 1\nalgorithms: {r: {module: ring, params: {chunk: 64k}}, f: {module: fancy, params: {chunk: 4096, depth: -1, label: \"\", pause: -5ms}}}\n",
		entriesOfRules + "  - {collective: [all_reduce, reduce], op: [sum], dtype: [float16], bytes: [4, 1K-2K, \"1M-\"], ranks: [2, -1, \"4-\"], nodes: [1, \"2-3\", 4-], algorithm: plain}\n",
		entriesOfRules + "  - {bytes: -4, ranks: -8, algorithm: plain}\n",
		entriesOfRules + "  - {bytes: 0, ranks: 1-1, algorithm: plain}\n",
	}
	rnd := rand.New(rand.NewPCG(6, 6))
	for range 100 {
		files = append(files, entriesOfRules+randomRules(rnd, 1+rnd.IntN(6)))
	}
	for _, text := range files {
		_, err := Parse("ccl.yaml", []byte(text))
		require.NoError(t, err)
		require.NoError(t, validate(t, schema, text), "%s", text)
	}
}

// The schema rejects what one value shows.
func TestSchemaRejects(t *testing.T) {
	schema := compiled(t)
	for _, text := range []string{
		"defaults: {}\n", "version: 2\n", "version: \"1\"\n", "[1]", "version: 1\ndefault: {}\n",
		"version: 1\ndefaults: {timeot: 5s}\n", "version: 1\ndefaults: {timeout: 5}\n", "version: 1\ndefaults: {timeout: 5min}\n", "version: 1\ndefaults: {transport: udp}\n",
		"version: 1\ndefaults: {debug: yes}\n", "version: 1\ndefaults: {world_size: 0}\n", "version: 1\ndefaults: {world_size: \"4\"}\n", "version: 1\ndefaults: {algorithm: 7}\n",
		"version: 1\nalgorithms: {auto: {module: plain}}\n", "version: 1\nalgorithms: {Ring: {module: plain}}\n", "version: 1\nalgorithms: {a: plain}\n",
		"version: 1\nalgorithms: {a: {}}\n", "version: 1\nalgorithms: {a: {module: plain, parms: {}}}\n", "version: 1\nalgorithms: {a: {module: plain, topology: ring}}\n",
		"version: 1\nalgorithms: {a: {module: plain, params: {x: 1}}}\n", "version: 1\nalgorithms: {a: {module: plain, params: {}}}\n",
		"version: 1\nalgorithms: {a: {module: ring, params: {chunks: 1}}}\n", "version: 1\nalgorithms: {a: {module: ring, params: {chunk: 4KB}}}\n",
		"version: 1\nalgorithms: {a: {module: fancy, params: {depth: \"1\"}}}\n", "version: 1\nalgorithms: {a: {module: fancy, params: {pause: 5}}}\n",
		"version: 1\nalgorithms: {a: {module: fancy, params: {fast: 1}}}\n", "version: 1\nalgorithms: {a: {module: fancy, params: {label: 1}}}\n",
		"version: 1\ntopology: {kind: torus}\n", "version: 1\ntopology: {count: all}\n", "version: 1\ntopology: {kind: torus_2d, w: 4}\n", "version: 1\ntopology: {size: 4}\n",
		"version: 1\nrules: {algorithm: plain}\n", "version: 1\nrules: [plain]\n", "version: 1\nrules: [{bytes: 4}]\n",
	} {
		_, err := Parse("ccl.yaml", []byte(text))
		if err == nil { // the mistake is one of parameters or of extents
			_, err = tryResolve(t, text, Request{})
		}
		require.Error(t, err, "%s", text)
		require.Error(t, validate(t, schema, text), "%s", text)
	}
	for _, fields := range []string{
		"collective: allreduce", "collective: [all_reduce, allreduce]", "collective: barrier", "collective: []", "collective: [reduce, reduce]", "dtype: fp16", "op: mean",
		"op: sum, collective: broadcast", "op: sum, collective: [all_reduce, broadcast]", "size: 4",
		"bytes: \">1MiB\"", "bytes: 4KB", "bytes: \"-\"", "bytes: 1-2-3", "bytes: [4, 5KB]", "bytes: 01-", "ranks: 4KiB", "ranks: 0", "ranks: 0-3", "ranks: [\"03-\"]", "nodes: 0", "nodes: 0-3", "nodes: 2KiB", "nodes: [1, two]", "nodes: []", "hosts: 2", "algorithm: Plain",
	} {
		text := entriesOfRules + "  - {algorithm: plain, " + fields + "}\n"
		if strings.HasPrefix(fields, "algorithm") {
			text = entriesOfRules + "  - {" + fields + "}\n"
		}
		_, err := Parse("ccl.yaml", []byte(text))
		require.Error(t, err, "%s", text)
		require.Error(t, validate(t, schema, text), "%s", text)
	}
}

// A program without algorithms has a schema too; a faulty algorithm is an error.
func TestSchemaOfRegistries(t *testing.T) {
	text, err := Schema(ccl.Registry{})
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	require.NotContains(t, string(text), "null")

	registry := testRegistry()
	faulty := registry["fancy"]
	faulty.Params = func() any { return nil }
	_, err = Schema(registry)
	require.ErrorContains(t, err, "fancy")
}
