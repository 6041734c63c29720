package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport/local"
	"github.com/goccl/goccl/transport/shm"
)

var update = flag.Bool("update", false, "rewrite what the documents and testdata say is printed")

// alone isolates a test from the developer's shell and machine: variables, a
// ccl.yaml, and cores, with which short inputs would travel with the
// synchronisation. Files are then relative to an empty directory.
func alone(t *testing.T) {
	t.Helper()
	for _, v := range []string{"GOCCL_CONFIG", "GOCCL_ALGORITHM", "GOCCL_TRANSPORT", "GOCCL_TIMEOUT", "GOCCL_WORLD_SIZE", "COLUMNS"} {
		t.Setenv(v, "")
	}
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	t.Chdir(t.TempDir())
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// printed returns the output of a command that succeeds.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(context.Background(), args, &stdout, &stderr)
	require.Zero(t, status, "%s", stderr.String())
	require.Empty(t, stderr.String())
	return stdout.String()
}

// failed returns the standard error of a command that fails.
func failed(t *testing.T, status int, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Equal(t, status, run(context.Background(), args, &stdout, &stderr), "%s", stderr.String())
	require.Empty(t, stdout.String())
	return stderr.String()
}

// refused returns the output of `goccl explain` that shows refused rows.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run(context.Background(), args, &stdout, &stderr))
	require.Regexp(t, `^goccl: error: \d+ of \d+ rows are refused\n$`, stderr.String())
	return stdout.String()
}

// reported returns the JSON of explain, whose exit status shows whether a row is refused.
func reported(t *testing.T, args ...string) (r explanation) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(context.Background(), append(args, "--json"), &stdout, &stderr)
	d := json.NewDecoder(&stdout)
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), "%s", stderr.String())
	refused := false
	for _, w := range r.Worlds {
		refused = refused || w.Refused != "" || slices.ContainsFunc(w.Calls, func(c *call) bool { return c.Refused != "" })
	}
	require.Equal(t, map[bool]int{true: 1}[refused], status, "%s", stderr.String())
	return r
}

// golden compares text with a file of testdata.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

const threeRules = `version: 1
algorithms:
  direct: {module: direct}
  ring: {module: ring}
  small_ring: {module: ring, params: {chunk: 64KiB}}
rules:
  - {collective: all_reduce, bytes: "4MiB-", ranks: "3-", dtype: float32, algorithm: ring}
  - {collective: all_reduce, bytes: "256KiB-8MiB", ranks: "3-", algorithm: small_ring}
  - {algorithm: direct}
`

func TestThreeRules(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	require.NoError(t, err)
	alone(t)
	writeFile(t, "ccl.yaml", threeRules)
	many := []string{"explain", "--ranks=2,4", "--collective=all_reduce,broadcast", "--dtype=float32,int64", "--op=sum,max", "--bytes=64KiB,1MiB,64MiB"}
	one := []string{"explain", "--ranks=4", "--collective=all_reduce", "--bytes=8MiB"}
	golden(t, filepath.Join(testdata, "many.txt"), printed(t, many...))
	golden(t, filepath.Join(testdata, "one.txt"), printed(t, one...))
	golden(t, filepath.Join(testdata, "one.json"), printed(t, append(one, "--json")...))

	require.NotContains(t, printed(t, many...), "matches too")
	why := printed(t, append(many, "--why")...)
	require.Contains(t, why, "matches too, but rule 1 goes first")
	require.Equal(t, why, printed(t, append(many, "--why")...), "the same every time")
}

// Every requested call is shown, once.
func TestCombinations(t *testing.T) {
	alone(t)
	r := reported(t, "explain", "--ranks=4,5", "--nodes=1,2,3", "--dtype=uint8,float64", "--op=sum,min", "--bytes=8KiB,8MiB")
	seen := map[string]bool{}
	for _, w := range r.Worlds {
		for _, c := range w.Calls {
			require.Equal(t, w.Ranks, c.Ranks)
			require.Equal(t, w.Nodes, c.Nodes)
			require.Equal(t, c.Collective.Traits().Reduces, c.Op != "")
			seen[strings.Join(append(c.row()[:7], c.Op), " ")] = true
		}
	}
	perRankCount := 0
	for _, coll := range ccl.Collectives() {
		perRankCount += 2 * 2 // types and lengths
		if coll.Traits().Reduces {
			perRankCount += 2 * 2 // the other operation
		}
	}
	require.Len(t, seen, 2*3*perRankCount)
}

// By default: all collectives, some sizes, float32, sum, and the number of ranks of
// dist.Spawn.
func TestDefaults(t *testing.T) {
	alone(t)
	runtime.GOMAXPROCS(3)
	r := reported(t, "explain")
	require.Equal(t, measure.Config{File: "built-in ccl.yaml", FoundBy: "built in"}, r.Config)
	require.Len(t, r.Worlds, 1)
	require.Equal(t, 3, r.Worlds[0].Ranks)
	colls := map[ccl.Collective]int{}
	for _, c := range r.Worlds[0].Calls {
		require.Equal(t, ccl.Float32, c.DType)
		colls[c.Collective]++
	}
	for _, coll := range ccl.Collectives() {
		require.Equal(t, len(defaultBytes), colls[coll])
	}

	writeFile(t, "ccl.yaml", "version: 1\ndefaults: {world_size: 5}\n"+
		"algorithms: {ring: {module: ring}, of_7: {module: ring, world_size: 7}}\nrules: [{algorithm: ring}]\n")
	require.Equal(t, 5, reported(t, "explain").Worlds[0].Ranks)
	require.Equal(t, 7, reported(t, "explain", "--algorithm=of_7").Worlds[0].Ranks)
	t.Setenv("GOCCL_ALGORITHM", "of_7")
	require.Equal(t, 7, reported(t, "explain").Worlds[0].Ranks)
}

func TestFoundBy(t *testing.T) {
	alone(t)
	const text = "version: 1\nalgorithms: {direct: {module: direct}}\nrules: [{algorithm: direct}]\n"
	writeFile(t, "ccl.yaml", text)
	writeFile(t, "named.yaml", text)
	writeFile(t, "option.yaml", text)
	require.Equal(t, measure.Config{File: "ccl.yaml", FoundBy: "working directory"}, reported(t, "explain").Config)
	t.Setenv("GOCCL_CONFIG", "named.yaml")
	require.Equal(t, measure.Config{File: "named.yaml", FoundBy: "GOCCL_CONFIG"}, reported(t, "explain").Config)
	require.Equal(t, measure.Config{File: "option.yaml", FoundBy: "--config"}, reported(t, "explain", "--config=option.yaml").Config)

	t.Setenv("GOCCL_CONFIG", "missing.yaml")
	require.Contains(t, failed(t, 1, "explain"), "missing.yaml: cannot read the configuration")
	require.Contains(t, failed(t, 1, "explain", "--config=missing.yaml"), "missing.yaml: cannot read the configuration")
}

// Flag before environment before file before default, with the origin of each.
func TestOrigins(t *testing.T) {
	alone(t)
	writeFile(t, "ccl.yaml", threeRules)
	values := func(args ...string) map[string]config.Setting {
		all := map[string]config.Setting{}
		for _, v := range reported(t, append([]string{"explain", "--ranks=4"}, args...)...).Worlds[0].Values {
			all[v.Key] = v
		}
		return all
	}
	require.Equal(t, config.Setting{Key: "defaults.timeout", Value: "1m0s", Origin: "default"}, values()["defaults.timeout"])
	t.Setenv("GOCCL_TIMEOUT", "7s")
	t.Setenv("GOCCL_ALGORITHM", "small_ring")
	require.Equal(t, config.Setting{Key: "defaults.timeout", Value: "7s", Origin: "GOCCL_TIMEOUT"}, values()["defaults.timeout"])
	require.Equal(t, config.Setting{Key: "defaults.timeout", Value: "none", Origin: "--timeout"}, values("--timeout=none")["defaults.timeout"])
	require.Equal(t, config.Setting{Key: "defaults.timeout", Value: "2s", Origin: "--timeout"}, values("--timeout=2s")["defaults.timeout"])
	require.Equal(t, config.Setting{Key: "defaults.algorithm", Value: "small_ring", Origin: "GOCCL_ALGORITHM"}, values()["defaults.algorithm"])
	require.Equal(t, config.Setting{Key: "defaults.algorithm", Value: "auto", Origin: "--algorithm"}, values("--algorithm=auto")["defaults.algorithm"])
	require.Equal(t, config.Setting{Key: "defaults.transport", Value: "local", Origin: "--transport"}, values("--transport=local")["defaults.transport"])

	c := reported(t, "explain", "--ranks=4", "--bytes=64MiB").Worlds[0].Calls[0]
	require.Equal(t, "small_ring", c.Entry)
	require.Equal(t, "GOCCL_ALGORITHM", c.ChosenBy)
	require.Equal(t, "matches, but defaults.algorithm is small_ring (GOCCL_ALGORITHM)", c.Rules[0].Why)
	c = reported(t, "explain", "--ranks=4", "--bytes=64MiB", "--algorithm=ring").Worlds[0].Calls[0]
	require.Equal(t, "--algorithm", c.ChosenBy)
	require.Equal(t, "matches, but defaults.algorithm is ring (--algorithm)", c.Rules[0].Why)
	require.Contains(t, failed(t, 1, "explain", "--ranks=4", "--algorithm=rnig"), "ccl.yaml: defaults.algorithm (--algorithm): there is no entry \"rnig\"")
}

func TestFindingsAndRefusals(t *testing.T) {
	alone(t)
	writeFile(t, "ccl.yaml", `version: 1
algorithms:
  direct: {module: direct}
  ring: {module: ring}
rules:
  - {bytes: "-1MiB", algorithm: direct}
  - {collective: all_reduce, ranks: "-8", algorithm: ring}
`)
	text := refused(t, "explain", "--ranks=4", "--bytes=64KiB,2MiB,6", "--dtype=float32")
	require.Equal(t, text, refused(t, "explain", "--ranks=4", "--bytes=64K,2M,6", "--dtype=float32"))
	require.Contains(t, text, "ccl.yaml:7: rules 1 and 2 overlap: both match all_reduce")
	require.Contains(t, text, "ccl.yaml:7: no rule matches ")
	require.Contains(t, text, "refused: not implemented: no rule of ccl.yaml matches; entries that can: direct, ring\n")
	require.Contains(t, text, "refused: 6 bytes are not a whole number of float32\n")

	r := reported(t, "explain", "--ranks=4", "--bytes=2MiB", "--collective=broadcast")
	require.Len(t, r.Findings, 2)
	c := r.Worlds[0].Calls[0]
	require.Contains(t, c.Refused, "ccl: broadcast (float32, 2097152 bytes, 4 ranks): not implemented")
	require.Nil(t, c.Cost)
	require.Len(t, c.Rules, 2)

	require.Contains(t, refused(t, "explain", "--ranks=2048", "--bytes=1024GiB", "--collective=broadcast"), "the cost of this length overflows")
}

// An undefined operation is refused with the text of the call.
func TestUndefined(t *testing.T) {
	alone(t)
	text := refused(t, "explain", "--ranks=2", "--bytes=1KiB", "--collective=all_reduce,scan,broadcast", "--dtype=complex64,float32", "--op=min,avg,band")
	require.Equal(t, 2, strings.Count(text, "refused: operation min of complex64 is not implemented: complex numbers have no order\n"))
	require.Equal(t, 2, strings.Count(text, "refused: operation band of complex64 is not implemented: only integers and bools have it\n"))
	require.Equal(t, 2, strings.Count(text, "refused: operation band of float32 is not implemented: only integers and bools have it\n"))
	require.Equal(t, 2, strings.Count(text, "refused: operation avg is not implemented: how many inputs come together differs from rank to rank\n"), "a scan of either type")
	require.Equal(t, 8, strings.Count(text, "refused: "))
}

// A call shows the length of the longest result of any rank.
func TestTotals(t *testing.T) {
	alone(t)
	got := map[string]int{}
	for _, c := range reported(t, "explain", "--ranks=3", "--bytes=64").Worlds[0].Calls {
		got[c.Collective.String()] = c.Total
	}
	require.Equal(t, map[string]int{
		"all_reduce": 64, "reduce": 64, "scan": 64, "exscan": 64, "broadcast": 64, "all_to_all": 64,
		"all_gather": 192, "gather": 192, "reduce_scatter": 24, "scatter": 24,
	}, got)
}

// World sizes that a configuration does not allow are rows; if there is no other, the
// command fails.
func TestWorlds(t *testing.T) {
	alone(t)
	writeFile(t, "ccl.yaml", "version: 1\ndefaults: {world_size: 4}\nalgorithms: {direct: {module: direct}}\nrules: [{algorithm: direct}]\n")
	text := refused(t, "explain", "--ranks=2,4", "--bytes=1MiB")
	require.Contains(t, text, "refused: the world size is 4 by ccl.yaml:2 (defaults.world_size), but --ranks is 2")
	r := reported(t, "explain", "--ranks=2,4")
	require.Empty(t, r.Worlds[0].Calls)
	require.NotEmpty(t, r.Worlds[0].Refused)
	require.NotEmpty(t, r.Worlds[1].Calls)
	require.Contains(t, failed(t, 1, "explain", "--ranks=2,3"), "goccl: error: the world size is 4")
}

// Rules see how many nodes a group with two levels is on. Tables have the nodes if any group is on several.
func TestNodes(t *testing.T) {
	alone(t)
	writeFile(t, "ccl.yaml", `version: 1
algorithms: {direct: {module: direct}, ring: {module: ring}}
rules:
  - {collective: all_reduce, nodes: "2-", algorithm: ring}
  - {algorithm: direct}
`)
	one := []string{"explain", "--ranks=4", "--collective=all_reduce", "--bytes=1MiB"}
	text := printed(t, one...)
	require.Equal(t, text, printed(t, append(one, "--nodes=1")...))
	require.NotContains(t, text, "NODES")
	require.Contains(t, text, "calls: transport local, ranks 4, dtype float32, op sum\n")
	require.Contains(t, text, "all_reduce of 1MiB (float32, sum) on 4 ranks over local: direct\n")
	require.Contains(t, text, "ring    nodes: 2-, and the group is on 1\n")

	text = printed(t, append(one, "--nodes=2")...)
	require.Contains(t, text, "calls: transport tcp, ranks 4, nodes 2, dtype float32, op sum\n")
	require.Contains(t, text, "all_reduce of 1MiB (float32, sum) on 4 ranks on 2 nodes over tcp: ring\n")
	require.Contains(t, text, "Between nodes, STEPS and MOVED count short inputs too")

	r := reported(t, "explain", "--ranks=3,8", "--nodes=1,2,4", "--collective=all_reduce", "--bytes=1MiB")
	got := map[string]string{}
	for _, w := range r.Worlds {
		key := fmt.Sprintf("%d on %d", w.Ranks, w.Nodes)
		if got[key] = w.Refused; w.Refused == "" {
			got[key] = w.Transport + ": " + w.Calls[0].Entry
		}
	}
	require.Equal(t, map[string]string{
		"3 on 1": "local: direct", "3 on 2": "tcp: ring", "8 on 1": "local: direct", "8 on 2": "tcp: ring", "8 on 4": "tcp: ring",
		"3 on 4": "3 ranks on 4 nodes do not have two levels: some node has to have several ranks; give --ranks more than --nodes",
	}, got)
	text = refused(t, "explain", "--ranks=3,8", "--nodes=1,2,4", "--collective=all_reduce", "--bytes=1MiB")
	require.Regexp(t, `(?m)^TRANSPORT +RANKS +NODES +COLLECTIVE `, text)
	require.Regexp(t, `(?m)^local +8 +1 +all_reduce .* rule 2$`, text)
	require.Regexp(t, `(?m)^tcp +8 +4 +all_reduce .* rule 1$`, text)
	require.Regexp(t, `(?m)^- +3 +4 +all .* refused: 3 ranks on 4 nodes `, text)

	for _, transport := range []string{"local", "shm"} {
		require.Contains(t, failed(t, 1, "explain", "--ranks=4", "--nodes=2", "--transport="+transport),
			`transport "`+transport+`" connects ranks on one node, and --nodes is 2; use --transport auto, tcp or mpi`)
	}
	require.Contains(t, printed(t, append(one, "--transport=mpi")...), "calls: transport mpi, ranks 4, dtype float32")
	require.Contains(t, printed(t, append(one, "--transport=mpi", "--nodes=3")...), "calls: transport mpi, ranks 4, nodes 3, dtype float32")
}

// A group of one rank runs no kernel, and explain shows that.
func TestOneRank(t *testing.T) {
	alone(t)
	require.Contains(t, printed(t, "explain", "--ranks=1,2"), "a group of one rank copies its own input without a kernel\n")
	c := reported(t, "explain", "--ranks=1").Worlds[0].Calls[0]
	require.Empty(t, c.Entry)
	require.NotEmpty(t, c.Note)
}

// The transport determines which inputs travel with the synchronisation.
func TestEager(t *testing.T) {
	alone(t)
	runtime.GOMAXPROCS(2)
	endpoints := local.New(2)
	limit := endpoints[0].PayloadLimit()
	for _, ep := range endpoints {
		require.NoError(t, ep.Close())
	}
	for _, bytes := range []int{8, 64 << 10} {
		w := reported(t, "explain", "--ranks=2", "--bytes="+strconv.Itoa(bytes), "--algorithm=direct").Worlds[0]
		require.Equal(t, limit, w.PayloadLimit)
		for _, c := range w.Calls {
			require.Equal(t, bytes <= limit, c.Eager)
			require.Equal(t, c.Eager, c.Cost.Steps == 0)
		}
	}
	require.False(t, reported(t, "explain", "--ranks=2", "--bytes=8", "--algorithm=ring").Worlds[0].Calls[0].Eager)
}

// Calls between processes can be explained without any: longer inputs travel with their
// synchronisation, and that depends on the number of ranks, not on the cores.
func TestProcesses(t *testing.T) {
	alone(t)
	writeFile(t, "shm.yaml", "version: 1\ndefaults: {transport: shm}\nalgorithms: {direct: {module: direct}}\nrules: [{algorithm: direct}]\n")
	r := reported(t, "explain", "--config=shm.yaml", "--ranks=2,64,65536", "--collective=all_reduce", "--bytes=2KiB,8KiB")
	for i, eager := range [][]bool{{true, true}, {true, false}, {false, false}} {
		w := r.Worlds[i]
		require.Equal(t, "shm", w.Transport)
		require.Equal(t, eager, []bool{w.Calls[0].Eager, w.Calls[1].Eager}, "%d ranks", w.Ranks)
	}
	for _, w := range r.Worlds[:2] {
		endpoints, err := shm.NewHeap(w.Ranks, shm.DefaultGeometry(w.Ranks))
		require.NoError(t, err)
		require.Equal(t, endpoints[0].PayloadLimit(), w.PayloadLimit)
	}
	require.Contains(t, printed(t, "explain", "--transport=shm", "--ranks=4"), "calls: transport shm, ranks 4")
}

// What starts ranks of its own is not a rank of a launcher.
func TestLaunched(t *testing.T) {
	alone(t)
	for name, value := range map[string]string{"GOCCL_SHM_NAME": "/train-17", "GOCCL_SHM_RANK": "0", "GOCCL_SHM_SIZE": "2"} {
		t.Setenv(name, value)
	}
	const says = "goccl: error: goccl bench --sweep starts the ranks that it measures: start it without the launcher"
	require.Contains(t, failed(t, 1, "bench", "--sweep=missing.yaml"), says)
	require.Contains(t, failed(t, 1, "bench", "--compare", "missing.json", "missing.json"), "missing.json", "nothing is measured")
}

func TestMistakes(t *testing.T) {
	alone(t)
	for _, m := range []struct {
		args   string
		status int
		says   string
	}{
		{"explian", 2, "explian"},
		{"explain --rank=2", 2, "unknown flag --rank"},
		{"explain --bytes=64kb", 2, `--bytes: "64kb" is not a size in bytes; kb can mean powers of 1000 or 1024: write 64KiB for 1024`},
		{"explain --bytes=0", 2, `--bytes: "0": a call has at least one byte`},
		{"explain --ranks=0", 2, "--ranks 0: from 1 to 65536 ranks are possible"},
		{"explain --ranks=65537", 2, "--ranks 65537"},
		{"explain --nodes=0", 2, "--nodes 0: from 1 to 65535 nodes are possible"},
		{"explain --nodes=65536", 2, "--nodes 65536"},
		{"explain --ranks=2 --nodes=2", 1, "2 ranks on 2 nodes do not have two levels"},
		{"explain --algorithms --nodes=2", 2, "--algorithms does not depend on the configuration"},
		{"explain --collective=allreduce", 2, `unknown collective "allreduce" (did you mean all_reduce?)`},
		{"explain --dtype=float", 2, `unknown dtype "float"`},
		{"explain --op=mean", 2, `unknown op "mean"`},
		{"explain --timeout=5", 2, `--timeout: "5": want a duration of more than 0, such as 60s; none: wait for ever`},
		{"explain --timeout=0s", 2, `--timeout: "0s": want a duration of more than 0, such as 60s; none: wait for ever`},
		{"explain --timeout=-5s", 2, `"-5s": want a duration of more than 0`},
		{"explain --markdown", 2, "--markdown needs --algorithms or --types"},
		{"explain --types --json", 2, "--types does not depend on the call"},
		{"explain --types --op=sum", 2, "--types does not depend on the call"},
		{"explain --types --algorithms", 2, "--types does not depend on the call"},
		{"explain --algorithms --markdown --json", 2, "exclude each other"},
		{"explain --algorithms --ranks=2", 2, "--algorithms does not depend on the configuration"},
		{"explain --algorithm=rnig --ranks=2", 1, "there is no entry \"rnig\" in algorithms (did you mean ring?)"},
		{"explain --transport=foobar --ranks=2", 1, `unknown transport "foobar"; use one of auto, tcp, shm, local`},
		{"doctor --fix", 2, "unknown flag --fix"},
		{"config", 2, `expected one of "check", "schema"`},
		{"config chekc", 2, "chekc"},
		{"config check --json", 2, "unknown flag --json"},
	} {
		require.Contains(t, failed(t, m.status, strings.Fields(m.args)...), m.says, m.args)
	}
	require.Contains(t, printed(t, "--help"), "explain")
	require.Contains(t, printed(t, "explain", "--help"), "--collective")
}

// A full disk, or a pager that was closed, is an error.
func TestOutputFails(t *testing.T) {
	alone(t)
	for _, args := range []string{"explain", "explain --json", "explain --algorithms", "explain --algorithms --json", "explain --types", "config check", "config schema"} {
		var stderr bytes.Buffer
		require.Equal(t, 1, run(context.Background(), strings.Fields(args), brokenWriter{}, &stderr))
		require.Contains(t, stderr.String(), "no room")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no room") }

// All registered algorithms are described, in all formats.
func TestAlgorithms(t *testing.T) {
	alone(t)
	var c catalogue
	require.NoError(t, json.Unmarshal([]byte(printed(t, "explain", "--algorithms", "--json")), &c))
	text, markdown := printed(t, "explain", "--algorithms"), printed(t, "explain", "--algorithms", "--markdown")
	names := slices.Sorted(maps.Keys(ccl.DefaultRegistry()))
	require.Subset(t, names, []string{"direct", "ring"})
	require.Len(t, c.Algorithms, len(names))
	for i, name := range names {
		a := ccl.DefaultRegistry()[name]
		require.Equal(t, name, c.Algorithms[i].Name)
		require.Contains(t, markdown, "\n## "+name+"\n")
		require.Len(t, c.Algorithms[i].Kernels, len(a.Kernels))
		for coll, k := range a.Kernels {
			require.Regexp(t, `(?m)^\| `+coll.String()+`[ ,].*\| `+regexp.QuoteMeta(k.Doc)+` \|$`, section(markdown, name))
			require.Contains(t, text, k.Doc)
		}
	}
}

// section returns the part of a page under a heading of the second level.
func section(page, heading string) string {
	_, after, _ := strings.Cut(page, "\n## "+heading+"\n")
	before, _, _ := strings.Cut(after, "\n## ")
	return before
}

// picky has kernels that reject some shapes.
var picky = &ccl.Algorithm{
	Name:       "picky",
	Doc:        "for tests",
	Topologies: []topology.Kind{topology.Mesh2DNoWrap},
	Params: func() any {
		return &struct {
			Depth int `yaml:"depth" doc:"this | that"`
		}{3}
	},
	Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc: "for tests",
			Supports: func(s ccl.Shape) error {
				switch {
				case s.Ranks%2 != 0:
					return errors.New("the number of ranks is odd")
				}
				return nil
			},
			Cost: func(s ccl.Shape) ccl.Cost {
				return ccl.Cost{Steps: s.Topology.W(), Bytes: s.Bytes + 1024}
			},
			Run: func(*ccl.Call) error { return nil },
		},
	},
}

func TestDescribe(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, describeAlgorithms(&b, ccl.Registry{picky.Name: picky}, &explainCommand{Markdown: true}))
	for _, line := range []string{
		"For tests. Topologies: mesh_2d_no_wrap.",
		`| depth | int | 3 | this \| that |`,
		"| collective | steps of 1KiB | of 64MiB | moved |  |",
		"| all_reduce, mesh_2d_no_wrap | 4 | 4 | 1 to 2 | for tests |",
		"Not supported by all_reduce: the number of ranks is odd.",
	} {
		require.Contains(t, b.String(), line+"\n")
	}
}

// A kernel with two levels is described for groups of two nodes, which have more than two ranks.
func TestDescribeTwoLevels(t *testing.T) {
	twoNodes := func(s ccl.Shape) error {
		if s.Nodes != 2 || s.Ranks < 3 {
			return fmt.Errorf("%d ranks on %d nodes", s.Ranks, s.Nodes)
		}
		return nil
	}
	levels := &ccl.Algorithm{Name: "levels", Doc: "for tests", Kernels: map[ccl.Collective]*ccl.Kernel{ccl.CollBroadcast: {
		Doc: "for tests", TwoLevels: true, Supports: twoNodes, Run: func(*ccl.Call) error { return nil },
		Cost: func(s ccl.Shape) ccl.Cost { return ccl.Cost{Steps: s.Nodes, Bytes: s.Bytes * s.Ranks / s.Nodes} },
	}}}
	var b bytes.Buffer
	require.NoError(t, describeAlgorithms(&b, ccl.Registry{levels.Name: levels}, &explainCommand{Markdown: true}))
	for _, line := range []string{
		"For tests. Topologies: any. For two levels.",
		"| broadcast | 2 | 2 | 8 | for tests |",
	} {
		require.Contains(t, b.String(), line+"\n")
	}
}

// No command runs with a misspelt variable.
func TestMisspeltVariable(t *testing.T) {
	t.Setenv("GOCCL_ALGORTHM", "ring")
	for _, args := range [][]string{{"explain"}, {"run", "-n", "1", "true"}, {"bench", "--ranks", "1"}, {"doctor"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, run(t.Context(), args, &stdout, &stderr))
		require.Contains(t, stderr.String(), "GOCCL_ALGORTHM: goccl has no such variable (did you mean GOCCL_ALGORITHM?)")
		require.Empty(t, stdout.String())
	}
}
