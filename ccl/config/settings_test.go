package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
)

// fancyParams has one parameter of each type.
type fancyParams struct {
	Chunk ccl.ByteSize  `yaml:"chunk"`
	Depth int           `yaml:"depth" doc:"how deep"`
	Fast  bool          `yaml:"fast"`
	Label string        `yaml:"label"`
	Pause time.Duration `yaml:"pause"`
	cache int           // no tag: none of the configuration's business
}

var errDepth = errors.New("depth must be at least 1")

func (p *fancyParams) Validate() error {
	p.cache++
	if p.Depth < 1 {
		return fmt.Errorf("%w; it is %d", errDepth, p.Depth)
	}
	return nil
}

// fancySupports refuses float64, and whatever is shorter than the chunk.
func fancySupports(s ccl.Shape) error {
	if s.DType == ccl.Float64 {
		return errors.New("float64 is too long")
	}
	if p := s.Params.(*fancyParams); ccl.ByteSize(s.Bytes) < p.Chunk {
		return fmt.Errorf("%d bytes are less than a chunk of %s", s.Bytes, p.Chunk)
	}
	return nil
}

// testRegistry has a module that does everything, one that does less and has
// parameters, and the modules of the built-in configuration.
func testRegistry() ccl.Registry {
	all := map[ccl.Collective]*ccl.Kernel{}
	for _, c := range ccl.Collectives() {
		all[c] = &ccl.Kernel{}
	}
	registry := ccl.Registry{}
	for _, a := range []*ccl.Algorithm{
		{Name: "plain", Kernels: all},
		{Name: "direct", Kernels: all},
		{Name: "tree", Kernels: all},
		{Name: "grid", Kernels: all},
		{Name: "doubletree", Kernels: all},
		{Name: "pairwise", Kernels: all},
		{Name: "hierarchical", Kernels: all},
		{Name: "mpi", Kernels: all},
		{
			Name:       "fancy",
			Topologies: []topology.Kind{topology.Ring1D, topology.Torus2D},
			Params:     func() any { return &fancyParams{Chunk: 4 << 10, Depth: 2, Label: "none"} },
			Kernels:    map[ccl.Collective]*ccl.Kernel{ccl.CollAllReduce: {Supports: fancySupports}, ccl.CollAllGather: {Supports: fancySupports}},
		},
		{
			Name: "ring",
			Params: func() any {
				return &struct {
					Chunk ccl.ByteSize `yaml:"chunk"`
				}{}
			},
			Kernels: map[ccl.Collective]*ccl.Kernel{ccl.CollAllReduce: {}},
		},
	} {
		a.Doc = "for tests"
		for _, k := range a.Kernels {
			k.Doc, k.Cost, k.Run = "for tests", func(ccl.Shape) ccl.Cost { return ccl.Cost{} }, func(*ccl.Call) error { return nil }
		}
		registry[a.Name] = a
	}
	return registry
}

// anyRule is what a file needs for its other values to be of use.
const anyRule = "algorithms: {plain: {module: plain}}\nrules: [{algorithm: plain}]\n"

func resolve(t *testing.T, text string, r Request) *Settings {
	t.Helper()
	s, err := tryResolve(t, text, r)
	require.NoError(t, err)
	return s
}

func tryResolve(t *testing.T, text string, r Request) (*Settings, error) {
	t.Helper()
	if r.Registry == nil {
		r.Registry = testRegistry()
	}
	if r.Ranks == 0 {
		r.Ranks = 4
	}
	s, err := parse(t, text).Resolve(r)
	require.Equal(t, err != nil, s == nil, "settings or an error")
	return s, err
}

func TestResolveEverything(t *testing.T) {
	s := resolve(t, everything, Request{})
	require.Equal(t, 4, s.WorldSize())
	require.Equal(t, "ring_1d (4 ranks)", s.Topology().String())
	require.Equal(t, "local", s.Transport())
	require.Equal(t, 90*time.Second, s.Timeout())
	require.Equal(t, "fancy", s.Algorithm())
	require.Equal(t, []Setting{
		{"algorithms.fancy.module", "fancy", "ccl.yaml:6"},
		{"algorithms.fancy.params.chunk", "64KiB", "ccl.yaml:9"},
		{"algorithms.fancy.params.depth", "3", "ccl.yaml:9"},
		{"algorithms.fancy.params.fast", "true", "ccl.yaml:9"},
		{"algorithms.fancy.params.label", `"a b"`, "ccl.yaml:9"},
		{"algorithms.fancy.params.pause", "5ms", "ccl.yaml:9"},
		{"algorithms.fancy.topology", "ring_1d", "ccl.yaml:7"},
		{"algorithms.fancy.world_size", "4", "ccl.yaml:8"},
		{"algorithms.plain.module", "plain", "ccl.yaml:4"},
		{"defaults.algorithm", "fancy", "ccl.yaml:2"},
		{"defaults.debug", "false", "default"},
		{"defaults.timeout", "1m30s", "ccl.yaml:2"},
		{"defaults.transport", "local", "ccl.yaml:2"},
		{"rules[1].algorithm", "fancy", "ccl.yaml:12"},
		{"rules[1].bytes", "16MiB-", "ccl.yaml:12"},
		{"rules[1].collective", "all_reduce", "ccl.yaml:12"},
		{"rules[1].dtype", "float32", "ccl.yaml:12"},
		{"rules[1].nodes", "2-", "ccl.yaml:12"},
		{"rules[1].op", "sum", "ccl.yaml:12"},
		{"rules[1].ranks", "3-", "ccl.yaml:12"},
		{"rules[2].algorithm", "plain", "ccl.yaml:13"},
		{"rules[2].bytes", "1KiB-16MiB", "ccl.yaml:13"},
		{"rules[2].ranks", "4", "ccl.yaml:13"},
		{"rules[3].algorithm", "plain", "ccl.yaml:14"},
		{"topology.h", "1", "default"},
		{"topology.kind", "ring_1d", "ccl.yaml:10"},
		{"topology.w", "4", "default"},
		{"world_size", "4", "ccl.yaml:8 (algorithms.fancy.world_size)"},
	}, s.Values())

	s.Values()[0].Value = "else"
	require.Equal(t, "fancy", s.Values()[0].Value, "the slice belongs to the caller")
}

// A configuration that is written anew from its effective values is the same.
func TestRoundTrip(t *testing.T) {
	for _, text := range []string{
		goccl.DefaultConfig(),
		everything,
		"version: 1\ndefaults: {timeout: none}\ntopology: {kind: torus_2d, count: 4}\n" + anyRule,
	} {
		s := resolve(t, text, Request{})
		again := resolve(t, rewrite(t, s), Request{})
		require.Equal(t, s.Agreement(), again.Agreement(), "%v\n%v", s.Values(), again.Values())
	}
}

// rewrite writes the effective values as JSON, which is YAML.
func rewrite(t *testing.T, s *Settings) string {
	file := map[string]any{"version": 1}
	var rules []map[string]any
	for _, v := range s.Values() {
		value := any(v.Value)
		if json.Valid([]byte(v.Value)) {
			value = json.RawMessage(v.Value) // a number, true or false, or quoted already
		}
		var number int
		var field string
		if _, err := fmt.Sscanf(v.Key, "rules[%d].%s", &number, &field); err == nil {
			for len(rules) < number {
				rules = append(rules, map[string]any{})
			}
			rules[number-1][field] = value
			continue
		}
		if s.Topology().Kind() == topology.Ring1D && (v.Key == "topology.w" || v.Key == "topology.h") {
			continue
		}
		path := strings.Split(v.Key, ".")
		if v.Key == "world_size" {
			path = []string{"topology", "count"}
		}
		at := file
		for _, name := range path[:len(path)-1] {
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			at = at[name].(map[string]any)
		}
		at[path[len(path)-1]] = value
	}
	if rules != nil {
		file["rules"] = rules
	}
	text, err := json.Marshal(file)
	require.NoError(t, err)
	return string(text)
}

func TestOptionsTakeThePlaceOfDefaults(t *testing.T) {
	for _, flags := range []bool{false, true} {
		s := resolve(t, everything, Request{Algorithm: "plain", Transport: "shm", Timeout: time.Second, Flags: flags, Ranks: 6})
		require.Equal(t, "plain", s.Algorithm())
		require.Equal(t, "shm", s.Transport())
		require.Equal(t, time.Second, s.Timeout())
		require.Equal(t, 6, s.WorldSize(), "the world_size of fancy no longer counts")
		origins := map[string]string{}
		for _, v := range s.Values() {
			origins[v.Key] = v.Origin
		}
		for _, name := range []string{"algorithm", "transport", "timeout"} {
			require.Equal(t, map[bool]string{false: "option", true: "--" + name}[flags], origins["defaults."+name])
		}
		require.Equal(t, "ccl.yaml:2 (defaults.world_size)", origins["world_size"])
	}

	require.Equal(t, time.Duration(0), resolve(t, everything, Request{Timeout: -1}).Timeout())
	require.Equal(t, time.Minute, resolve(t, "version: 1\n"+anyRule, Request{}).Timeout())
	require.Equal(t, "auto", resolve(t, "version: 1\n"+anyRule, Request{Algorithm: "auto"}).Algorithm())

	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Algorithm: "fency"}, `ccl.yaml: defaults.algorithm (option): there is no entry "fency" in algorithms (did you mean fancy?); entries: plain, fancy`},
		{Request{Transport: "smh"}, `ccl.yaml: defaults.transport (option): unknown transport "smh" (did you mean shm?); use one of auto, shm, local`},
		{Request{Ranks: -1}, "ccl: Resolve: Request.Ranks is -1; from 1 to 65536 are allowed"},
		{Request{Ranks: 65537}, "ccl: Resolve: Request.Ranks is 65537; from 1 to 65536 are allowed"},
	} {
		_, err := tryResolve(t, everything, c.r)
		require.EqualError(t, err, c.want)
	}
}

// The agreement contains the values, and not where they come from.
func TestAgreement(t *testing.T) {
	const text = "version: 1\nalgorithms: {fancy: {module: fancy, params: {chunk: 4KiB}}}\nrules: [{bytes: -4KiB, algorithm: fancy}]\n"
	agreement := resolve(t, text, Request{}).Agreement()
	for _, same := range []string{
		"# more lines\n\n" + text,
		strings.Replace(text, "params: {chunk: 4KiB}", "params: {}", 1), // the default
		strings.Replace(text, "chunk: 4KiB", "chunk: 4096", 1),
		strings.Replace(text, "-4KiB", "0-4096", 1),
		text + "defaults: {timeout: 60s, world_size: 4}\n",
		text + "topology: {kind: ring_1d, count: 4}\n",
	} {
		require.Equal(t, agreement, resolve(t, same, Request{}).Agreement(), "%s", same)
	}
	seen := map[string]string{agreement: text}
	for _, other := range []string{
		strings.Replace(text, "chunk: 4KiB", "chunk: 8KiB", 1),
		strings.Replace(text, "chunk: 4KiB", "depth: 5", 1),
		strings.Replace(text, "chunk: 4KiB", `label: "4\nalgorithms.fancy.params.pause=1s"`, 1),
		strings.Replace(text, "bytes: -4KiB", "bytes: 4KiB", 1),
		strings.Replace(text, "bytes: -4KiB", "bytes: 4KiB-", 1),
		strings.Replace(text, "bytes: -4KiB, ", "", 1),
		strings.Replace(text, "module: fancy,", "module: fancy, world_size: 4,", 1),
		strings.Replace(text, "module: fancy,", "module: fancy, topology: ring_1d,", 1),
		text + "defaults: {timeout: none}\n",
		text + "defaults: {transport: local}\n",
		text + "defaults: {algorithm: fancy}\n",
		text + "topology: {kind: torus_2d, w: 2, h: 2}\n",
		text + "topology: {kind: torus_2d, w: 4, h: 1}\n",
	} {
		d := resolve(t, other, Request{}).Agreement()
		require.NotContains(t, seen, d, "%s", other)
		seen[d] = other
	}
	require.NotContains(t, seen, resolve(t, text, Request{Ranks: 3}).Agreement())
}

// The steps come in their order, so the first of several mistakes is the
// one that is told.
func TestResolveOrder(t *testing.T) {
	const (
		unknown = "version: 1\nalgorithms: {a: {module: fency}}\n"
		size    = "defaults: {world_size: 5}\n"
		grid    = "topology: {kind: torus_2d, w: 3, h: 1}\n"
	)
	_, err := tryResolve(t, unknown+size+grid, Request{})
	require.EqualError(t, err, `ccl.yaml:2:26: algorithms.a.module: no algorithm "fency" is registered (did you mean fancy?); registered: direct, doubletree, fancy, grid, hierarchical, mpi, pairwise, plain, ring, tree; a program has to import the package that registers it`)
	require.ErrorAs(t, err, new(*Error))

	fixed := strings.Replace(unknown, "fency", "fancy", 1)
	_, err = tryResolve(t, fixed+size+grid, Request{})
	require.ErrorAs(t, err, new(*transport.MissingConfigurationError))

	_, err = tryResolve(t, fixed+size+grid, Request{Ranks: 5})
	require.ErrorContains(t, err, "ccl.yaml:4:11: topology: ")

	_, err = tryResolve(t, unknown, Request{Registry: ccl.Registry{}})
	require.ErrorContains(t, err, "; registered: none; ")
}

// The world size that is configured and the ranks that there are.
func TestWorldSizeMismatch(t *testing.T) {
	const start = "version: 1\nalgorithms:\n  sized: {module: plain, world_size: 3}\n"
	from := "dist.Spawn hosts 4 ranks: dist.WithRanks(4)"
	for _, c := range []struct{ text, algorithm, key, want string }{
		{start + "topology: {count: 6}\n", "", "topology.count",
			"the world size is 6 by ccl.yaml:4 (topology.count), but dist.Spawn hosts 4 ranks: dist.WithRanks(4); start 6 ranks, or set topology.count to 4"},
		{start + "defaults: {world_size: 2}\n", "", "defaults.world_size",
			"the world size is 2 by ccl.yaml:4 (defaults.world_size), but dist.Spawn hosts 4 ranks: dist.WithRanks(4); start 2 ranks, or set defaults.world_size to 4"},
		{start, "sized", "algorithms.sized.world_size",
			"the world size is 3 by ccl.yaml:3 (algorithms.sized.world_size), but dist.Spawn hosts 4 ranks: dist.WithRanks(4); start 3 ranks, or set algorithms.sized.world_size to 4"},
	} {
		_, err := tryResolve(t, c.text, Request{Algorithm: c.algorithm, Ranks: 4, RanksFrom: from})
		require.EqualError(t, err, c.want)
		var missing *transport.MissingConfigurationError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, []string{c.key}, missing.Missing)
	}
	_, err := tryResolve(t, start, Request{Algorithm: "sized", Ranks: 1})
	require.ErrorContains(t, err, "but the number of ranks is 1;")

	s := resolve(t, start+"  plain: {module: plain}\nrules: [{algorithm: plain}]\n", Request{Ranks: 7, RanksFrom: "seven were launched"})
	require.Equal(t, 7, s.WorldSize(), "count: auto is as many as there are")
	values := s.Values()
	require.Equal(t, Setting{"world_size", "7", "seven were launched"}, values[len(values)-1])
}

// A world size that does not come from count rebuilds a ring; for a grid it is an error unless it
// equals the grid's size.
func TestTopology(t *testing.T) {
	const size = "version: 1\ndefaults: {world_size: 6}\n"
	for _, c := range []struct{ text, want string }{
		{size, "ring_1d (6 ranks)"},
		{size + "topology: {count: 8}\n", "ring_1d (6 ranks)"},
		{size + "topology: {count: auto, kind: mesh_2d_no_wrap, w: 3, h: 2}\n", "mesh_2d_no_wrap 3x2 (6 ranks)"},
		{size + "topology: {count: 6, kind: torus_2d, w: 3, h: 2}\n", "torus_2d 3x2 (6 ranks)"},
	} {
		require.Equal(t, c.want, resolve(t, c.text+anyRule, Request{Ranks: 6}).Topology().String())
	}
	for _, c := range []struct{ text, want string }{
		{size + "topology: {count: 8, kind: torus_2d, w: 4, h: 2}\n",
			"ccl.yaml:3:11: topology: torus_2d with count=8, but the world size is 6 (ccl.yaml:2 (defaults.world_size)); change count, w and h, or choose ring_1d"},
		{size + "topology: {count: 4, kind: torus_2d}\n",
			"ccl.yaml:3:11: topology: torus_2d with count=4, but the world size is 6 (ccl.yaml:2 (defaults.world_size)); change count, w and h, or choose ring_1d"},
		{size + "topology: {kind: torus_2d, w: 4, h: 2}\n",
			"ccl.yaml:3:11: topology: torus_2d with count=6 w=4 h=2: w*h is not count; give both, with w*h = 6, for example w=3 h=2; count is the world size (ccl.yaml:2 (defaults.world_size))"},
		{"version: 1\ntopology:\n  kind: torus_2d\n",
			"ccl.yaml:2:1: topology: torus_2d with count=6: count 6 is not a square, and w and h are not given; give both, with w*h = 6, for example w=3 h=2; count is the world size (the number of ranks is 6)"},
		{"version: 1\ntopology: {w: 6, h: 1}\n",
			"ccl.yaml:2:11: topology: ring_1d with count=6 w=6 h=1: a ring has no extents; remove w and h, or choose torus_2d or mesh_2d_no_wrap; count is the world size (the number of ranks is 6)"},
	} {
		_, err := tryResolve(t, c.text, Request{Ranks: 6})
		require.EqualError(t, err, c.want)
		require.ErrorAs(t, err, new(*Error))
	}
}

// An entry that is not for this group is an error where it is in use, and only
// there.
func TestEntriesThatAreNotForThisGroup(t *testing.T) {
	const entries = `version: 1
algorithms:
  plain: {module: plain}
  sized: {module: plain, world_size: 3}
  torus: {module: plain, topology: torus_2d}
  fancy: {module: fancy}
topology: {kind: mesh_2d_no_wrap, w: 2, h: 2}
`
	resolve(t, entries+"rules: [{algorithm: plain}]\n", Request{})
	for _, c := range []struct{ text, algorithm, want string }{
		{"rules: [{algorithm: plain},\n {algorithm: sized}]\n", "",
			"ccl.yaml:9:14: rules[2].algorithm: sized is for a world size of 3 (ccl.yaml:4), but here it is 4 (the number of ranks is 4)"},
		{"rules: [{algorithm: torus}]\n", "",
			"ccl.yaml:8:21: rules[1].algorithm: torus is for the topology torus_2d (ccl.yaml:5), but here it is mesh_2d_no_wrap (ccl.yaml:7)"},
		{"rules: [{algorithm: fancy}]\n", "",
			"ccl.yaml:8:21: rules[1].algorithm: fancy is the algorithm fancy, which is for the topologies [ring_1d torus_2d], but here it is mesh_2d_no_wrap (ccl.yaml:7)"},
		{"defaults: {algorithm: torus}\n", "",
			"ccl.yaml:8:23: defaults.algorithm: torus is for the topology torus_2d (ccl.yaml:5), but here it is mesh_2d_no_wrap (ccl.yaml:7)"},
		{"", "fancy",
			"ccl.yaml: defaults.algorithm (option): fancy is the algorithm fancy, which is for the topologies [ring_1d torus_2d], but here it is mesh_2d_no_wrap (ccl.yaml:7)"},
	} {
		_, err := tryResolve(t, entries+c.text, Request{Algorithm: c.algorithm})
		require.EqualError(t, err, c.want)
		require.ErrorAs(t, err, new(*Error))

		// Rules are not in use where one algorithm does everything.
		resolve(t, entries+c.text, Request{Algorithm: "plain"})
	}
}

func TestParams(t *testing.T) {
	const text = "version: 1\nalgorithms:\n  a: {module: fancy, params: {chunk: 64KiB, depth: -3, fast: false, label: \"\", pause: 1m}}\n  b: {module: fancy}\ndefaults: {algorithm: a}\n"
	positive := strings.Replace(text, "-3", "3", 1)
	s := resolve(t, positive, Request{})
	require.Equal(t, &fancyParams{64 << 10, 3, false, "", time.Minute, 1}, s.candidate("a").params)
	require.Equal(t, &fancyParams{4 << 10, 2, false, "none", 0, 1}, s.candidate("b").params)
	require.NotSame(t, s.candidate("a").params, resolve(t, positive, Request{}).candidate("a").params)

	_, err := tryResolve(t, text, Request{})
	require.ErrorIs(t, err, errDepth)
	require.EqualError(t, err, "ccl.yaml:3:30: algorithms.a.params: depth must be at least 1; it is -3")

	for _, c := range []struct{ entry, want string }{
		{"{module: fancy, params: {chnk: 1}}", "3:31: algorithms.a.params.chnk: unknown key (did you mean chunk?); known keys: chunk, depth, fast, label, pause"},
		{"{module: fancy, params: {cache: 1}}", "3:31: algorithms.a.params.cache: unknown key; known keys: chunk, depth, fast, label, pause"},
		{"{module: fancy, params: [chunk]}", "3:30: algorithms.a.params: want a mapping (key: value), got a list"},
		{"{module: fancy, params: {chunk: 64kb}}", `3:38: algorithms.a.params.chunk: "64kb" is not a size in bytes; kb can mean powers of 1000 or 1024: write 64KiB for 1024`},
		{"{module: fancy, params: {chunk: -1}}", `3:38: algorithms.a.params.chunk: "-1" is not a size in bytes; write it like 4096, 64KiB, 1MiB or 2GiB; 64K, 1M and 2G are the same`},
		{"{module: fancy, params: {chunk: true}}", "3:38: algorithms.a.params.chunk: want a text or a number, got true"},
		{"{module: fancy, params: {depth: 2.0}}", "3:38: algorithms.a.params.depth: want a whole number such as 4, in decimal digits without quotes; got the number 2.0"},
		{"{module: fancy, params: {depth: {a: 1}}}", "3:38: algorithms.a.params.depth: want a whole number such as 4, in decimal digits without quotes; got a mapping"},
		{"{module: fancy, params: {fast: yes}}", `3:37: algorithms.a.params.fast: want true or false, got the text "yes"`},
		{"{module: fancy, params: {fast: True}}", "3:37: algorithms.a.params.fast: want true or false, got True"},
		{"{module: fancy, params: {label: 7}}", "3:38: algorithms.a.params.label: want a text, got the number 7; quotes make it one"},
		{"{module: fancy, params: {pause: 5}}", "3:38: algorithms.a.params.pause: want a duration with its unit, such as 60s or 1m30s; got the number 5"},
		{"\n    module: fancy\n    params:\n      fast: true\n      depth: 0", "5:5: algorithms.a.params: depth must be at least 1; it is 0"},
		{"{module: plain, params: {}}", "3:30: algorithms.a.params: algorithm plain has no parameters"},
	} {
		_, err := tryResolve(t, "version: 1\nalgorithms:\n  a: "+c.entry+"\n", Request{})
		require.EqualError(t, err, "ccl.yaml:"+c.want)
		require.ErrorAs(t, err, new(*Error))
	}

	_, err = tryResolve(t, "version: 1\nalgorithms:\n  a: {module: fancy, params: {depth: 9223372036854775808}}\n", Request{})
	require.ErrorContains(t, err, "is out of range: from "+strconv.Itoa(-1<<(strconv.IntSize-1)))
}

// A mistake of the author of an algorithm is an error, not a panic.
func TestFaultyParams(t *testing.T) {
	for _, c := range []struct {
		params any
		want   string
	}{
		{nil, "its Params returns a <nil>, and has to return a pointer to a struct"},
		{fancyParams{}, "its Params returns a config.fancyParams, and has to return a pointer to a struct"},
		{(*fancyParams)(nil), "its Params returns a *config.fancyParams, and has to return a pointer to a struct"},
		{&struct {
			X []int `yaml:"x"`
		}{}, "its parameter x is a []int, and can be a bool, int, string, time.Duration or ccl.ByteSize"},
		{&struct {
			X int64 `yaml:"x"`
		}{}, "its parameter x is a int64, and can be a bool, int, string, time.Duration or ccl.ByteSize"},
		{&struct {
			x int `yaml:"x"`
		}{}, "its parameter x is the unexported field x"},
	} {
		registry := testRegistry()
		faulty := registry["fancy"]
		faulty.Params = func() any { return c.params }
		_, err := tryResolve(t, "version: 1\nalgorithms:\n  a: {module: fancy}\n", Request{Registry: registry})
		require.EqualError(t, err, "ccl.yaml:3:6: algorithms.a.params: algorithm fancy is faulty: "+c.want)
	}
}

// The origin of a value has the full path of its file, if that is one; where a key has no value, the file stands for it.
func TestOriginOf(t *testing.T) {
	t.Chdir(t.TempDir())
	s := resolve(t, "version: 1\nalgorithms: {fancy: {module: fancy}}\nrules: [{algorithm: fancy}]\n", Request{Timeout: time.Second})
	require.Equal(t, "ccl.yaml:2", s.OriginOf("algorithms.fancy.module"), "the text is from no file")
	require.NoError(t, os.WriteFile("ccl.yaml", nil, 0o600))
	file, err := filepath.Abs("ccl.yaml")
	require.NoError(t, err)
	for key, want := range map[string]string{
		"defaults.timeout":         "option",
		"defaults.debug":           "default",
		"algorithms.fancy.module":  file + ":2",
		"algorithms.direct.module": file,
	} {
		require.Equal(t, want, s.OriginOf(key), key)
	}
	builtIn, err := Default().Resolve(Request{Ranks: 2, Registry: testRegistry()})
	require.NoError(t, err)
	require.Equal(t, builtInFile, builtIn.OriginOf("algorithms.none.module"))
}
