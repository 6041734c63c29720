package tool

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

// quick are flags for very short measurements.
var quick = []string{"--time=1ms", "--warmup=0", "--min-calls=2", "--max-calls=2"}

func bench(args ...string) []string { return append(append([]string{"bench"}, args...), quick...) }

var (
	aboutMachine = regexp.MustCompile(`(?m)^machine .*\n(load .*\n)?`)
	coreToCore   = regexp.MustCompile(`(; )?core to core, one way [^;\n]*`)
	verdictWord  = regexp.MustCompile(`(same|faster|slower|unclear|ok)\n`)
	eitherCopy   = regexp.MustCompile(`(own|peer)_copy`)
	checkBarrier = regexp.MustCompile(`(?m)^barrier +\d+ .*(ok|faster|slower|unclear.*)\n`) // needs two cores
	again        = regexp.MustCompile(`(?m)^(\S+ # \S+ \S+ # # #) [#-] (# #)$`)             // after numbers are masked
	anyNumber    = regexp.MustCompile(`\d+(\.\d+)?`)
	ofBackward   = regexp.MustCompile(`(?m)^(overlapped|at_end)( [-#]+)+$`) // what follows from noise may be missing
	space        = regexp.MustCompile(` +`)
)

// steady removes what differs from run to run and from machine to machine.
func steady(text string) string {
	text = aboutMachine.ReplaceAllString(text, "machine\n")
	text = regexp.MustCompile(`(?m)^([ab] +\S+\.json: ).*$`).ReplaceAllString(text, "$1#")
	text = coreToCore.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "in the same rounds: \n", "")
	text = checkBarrier.ReplaceAllString(text, "")
	text = eitherCopy.ReplaceAllString(text, "#")
	text = verdictWord.ReplaceAllString(text, "#\n")
	text = anyNumber.ReplaceAllString(text, "#")
	text = space.ReplaceAllString(text, " ")
	text = ofBackward.ReplaceAllString(text, "$1 #")
	text = strings.ReplaceAll(text, " NOW AGAIN BOUND ", " NOW BOUND ")
	return again.ReplaceAllString(text, "$1 $2") // what a machine with company measures again
}

func TestBenchTable(t *testing.T) {
	alone(t)
	text := printed(t, bench("all_reduce", "all_gather", "broadcast", "barrier", "--ranks=2,3", "-b1K", "-e2KiB", "-f2",
		"--algorithm=auto,ring,grid", "--out-of-place", "--root=1", "--consume")...)
	const head = `
 size entry p# p# p# min whole cpu busbw own peer x own x peer
 us us us us us cores GB/s us us
`
	rows := func(refused, factor string) (lines string) {
		for range 2 {
			for _, entry := range []string{"auto (direct)", "ring"} {
				lines += " #KiB " + entry + strings.Repeat(" #", 11) + "\n"
			}
			lines += " #KiB grid refused: " + refused + "\n"
		}
		return lines + "all elements are right; " + factor + "in the same rounds: barrier # us (# to #)\n"
	}
	const unfit = "grid is the algorithm grid, which is for the topologies [torus_#d mesh_#d_no_wrap], but here it is ring_#d (built-in ccl.yaml:#)"
	want := "machine\nconfiguration built-in ccl.yaml (built in)\nclock # ns per reading, included once in every time\n"
	for _, factor := range []string{"", "busbw is # algbw; "} { // 1 for two ranks
		want += "\nall_reduce of float# by sum, out of place, result read, # ranks over local" + head + rows(unfit, factor) +
			"\nall_gather of float#, out of place, result read, # ranks over local" + head + rows(unfit, "busbw is # algbw; ") +
			"\nbroadcast of float# from rank #, result read, # ranks over local" + head + rows(unfit, "") +
			"\nbarrier, # ranks over local\nentry p# p# p# min whole cpu\n us us us us us cores\n- # # # # # #\n"
	}
	require.Equal(t, want, steady(text))
}

// Ranks compute between calls, several of which follow each other; every result is verified, and the
// pace of the calls is in the title, the CSV and the JSON.
func TestBenchCompute(t *testing.T) {
	alone(t)
	text := printed(t, bench("all_reduce", "barrier", "--ranks=2", "-b1K", "-e1K", "--compute=20us", "--csv=a.csv", "--json=a.json")...)
	require.Contains(t, text, "\nall_reduce of float32 by sum, in place, 4 in a row after computing 20us +-10 %, 2 ranks over local\n")
	require.Contains(t, text, "\nbarrier, 4 in a row after computing 20us +-10 %, 2 ranks over local\n")
	for _, row := range records(t, "a.csv") {
		require.Equal(t, []string{"20", "0.1", "4"}, []string{row["compute_us"], row["jitter"], row["buckets"]})
		if row["entry"] != measure.CoreToCore {
			require.Equal(t, "4", row["calls"], "two calls are one step")
			require.NotEmpty(t, row["p90_us"])
			require.NotEmpty(t, row["whole_us"])
		}
		require.Equal(t, "0", row["errors"])
	}
	require.Contains(t, printed(t, "bench", "--compare", "a.json", "a.json"), "in, 4 in a row after computing 20us +-10 %")

	require.Contains(t, printed(t, bench("--ranks=2", "-e4", "--compute=20us", "--jitter=0", "--buckets=1")...), "in place, after computing 20us +-0 %, 2 ranks")
	require.Contains(t, printed(t, bench("--ranks=2", "-e4", "--buckets=2")...), "in place, 2 in a row, 2 ranks")
}

// Steps of training have a table for each kind of backward, with what communication adds to it, and are verified.
func TestBenchWorkload(t *testing.T) {
	alone(t)
	text := printed(t, bench("--workload=lenet5", "--ranks=2", "--compute=100us", "--csv=a.csv", "--json=a.json", "--plot=a.svg")...)
	for _, backward := range []string{"waits and leaves the cores free", "computes on the ranks' cores"} {
		require.Contains(t, text, "\nlenet5 of float32, 0.2468 MB, backward "+backward+" for 100us, 2 ranks over local\n"+
			"entry         p50    p90    p99    min  whole   cpu backward  added hidden x at end  floor x floor\n")
	}
	require.Equal(t, 2, strings.Count(text, "all elements are right; in the same rounds: barrier "))
	rows := map[string]int{}
	for _, row := range records(t, "a.csv") {
		require.Equal(t, "0", row["errors"])
		require.Equal(t, "100", row["compute_us"])
		if row["library"] == measure.Library {
			require.Equal(t, row["entry"] == measure.Views || row["entry"] == measure.Copies, row["x_floor"] != "", row)
			require.Equal(t, row["entry"] == measure.Overlapped, row["x_at_end"] != "", row)
			rows[row["entry"]+" "+row["wait"]]++
		}
	}
	require.Equal(t, map[string]int{"overlapped true": 1, "at_end true": 1, "views true": 1, "copies true": 1,
		"overlapped false": 1, "at_end false": 1, "views false": 1, "copies false": 1}, rows)
	require.Contains(t, printed(t, "bench", "--compare", "a.json", "a.json"), "floor")
	picture, err := os.ReadFile("a.svg")
	require.NoError(t, err)
	require.Contains(t, string(picture), "backward waits and leaves the cores free for 100us, 2 ranks over local")
	require.Contains(t, printed(t, bench("--workload=lenet5", "--ranks=1")...), "for 50ms, 1 rank over local")
}

// All combinations of configuration, topology, transport, parameters and memory are measured, and each
// is a column.
func TestBenchSweepFlags(t *testing.T) {
	alone(t)
	for _, name := range []string{"a", "b"} {
		writeFile(t, name+".yaml", "version: 1\nalgorithms: {direct: {module: direct}, tree: {module: tree, params: {chunk: 64KiB}}}\nrules: [{algorithm: direct}]\n")
	}
	flags := bench("--ranks=4", "-b4K", "-e4K", "--config=a.yaml,b.yaml", "--topology=ring_1d,torus_2d:4x1",
		"--algorithm=auto", "--param=tree.arity=1,2", "--param=tree.chunk=1KiB,2KiB", "--memory=private,alloc")
	text := printed(t, append(flags, "--csv=a.csv", "--json=a.json", "--plot=a.svg")...)
	require.Contains(t, text, "configuration  a.yaml, b.yaml (--config)\n")
	require.Contains(t, text, "\nall_reduce of float32 by sum, in place, 4 ranks over local, torus_2d:4x1, b.yaml\n")
	require.Regexp(t, `(?m)^ +4KiB tree arity=2 chunk=1KiB alloc +[0-9]`, text)
	combinations := map[string]int{}
	for _, row := range records(t, "a.csv") {
		require.Equal(t, "0", row["errors"])
		if row["library"] == measure.Library {
			require.Equal(t, "local", row["transport"])
			combinations[row["config"]+" "+row["topology"]]++
			combinations[row["entry"]+" "+row["params"]+" "+row["memory"]]++
		}
	}
	want := map[string]int{"auto  private": 4, "auto  alloc": 4}
	for _, in := range []string{"a.yaml ring_1d", "a.yaml torus_2d:4x1", "b.yaml ring_1d", "b.yaml torus_2d:4x1"} {
		want[in] = 10
	}
	for _, params := range []string{"arity=1 chunk=1KiB", "arity=1 chunk=2KiB", "arity=2 chunk=1KiB", "arity=2 chunk=2KiB"} {
		want["tree "+params+" private"], want["tree "+params+" alloc"] = 4, 4
	}
	require.Equal(t, want, combinations)
	require.Contains(t, printed(t, "bench", "--compare", "a.json", "a.json"), "tree arity=2 chunk=2KiB alloc torus_2d:4x1 b.yaml")

	require.Contains(t, failed(t, 2, bench("--ranks=2", "-e4", "--param=tree.chunks=1")...), "chunks: unknown key (did you mean chunk?)")
	require.Contains(t, failed(t, 2, bench("--ranks=2", "-e4", "--param=direct.chunk=1")...), "algorithm direct has no parameters")
	require.Contains(t, failed(t, 2, bench("--ranks=2", "-e4", "--param=tree.arity=two")...), "arity")
}

// records returns the lines of a CSV file by the names of its columns.
func records(t *testing.T, path string) (all []map[string]string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		all = append(all, row)
	}
	return all
}

// By default: an all-reduce of float32 by sum, in place, on at least two ranks, of
// sizes from 4 bytes to 64 MiB, with the configuration's algorithms.
func TestBenchDefaults(t *testing.T) {
	alone(t)
	c := &benchCommand{}
	require.NoError(t, c.Validate())
	plan := c.plan()
	plan.Ranks = []int{2}
	cases := plan.Cases()
	require.Len(t, cases, 13)
	require.Equal(t, measure.Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, Bytes: 4, InPlace: true}, cases[0])
	require.Equal(t, 64<<20, cases[12].Bytes)
	require.Equal(t, measure.DefaultBudget, c.budget())

	require.Contains(t, printed(t, bench("-e4")...), "in place, 2 ranks over local\n")
	writeFile(t, "ccl.yaml", "version: 1\ndefaults: {world_size: 3, algorithm: ring}\nalgorithms: {ring: {module: ring}}\n")
	text := printed(t, bench("-b8", "-e8")...)
	require.Contains(t, text, "configuration  ccl.yaml (working directory)\n")
	require.Contains(t, text, "in place, 3 ranks over local\n")
	require.Regexp(t, ` 8 ring  `, text)
	t.Setenv("GOCCL_WORLD_SIZE", "1")
	require.Contains(t, printed(t, bench("-e4")...), "in place, 1 rank over local\n")
}

func TestBenchBudget(t *testing.T) {
	zero := 0
	for _, m := range []struct {
		flags budgetFlags
		want  measure.Budget
	}{
		{budgetFlags{}, measure.DefaultBudget},
		{budgetFlags{Time: time.Second, Warmup: &zero}, measure.Budget{Time: time.Second, MinCalls: 10, MaxCalls: 20000}},
		{budgetFlags{MinCalls: 30000}, measure.Budget{Time: 200 * time.Millisecond, Warmup: 5, MinCalls: 30000, MaxCalls: 30000}},
		{budgetFlags{MaxCalls: 3}, measure.Budget{Time: 200 * time.Millisecond, Warmup: 5, MinCalls: 3, MaxCalls: 3}},
		{budgetFlags{MinCalls: 2, MaxCalls: 3}, measure.Budget{Time: 200 * time.Millisecond, Warmup: 5, MinCalls: 2, MaxCalls: 3}},
	} {
		require.Equal(t, m.want, m.flags.budget())
	}
}

func TestBenchMistakes(t *testing.T) {
	alone(t)
	writeFile(t, "not.json", "{}")
	writeFile(t, "bad.yaml", "version: 1\nrank: 2\n")
	const small = "version: 1\nranks: 2\nbytes: 4\n"
	writeFile(t, "rign.yaml", small+"algorithms: [direct, rign]\n")
	writeFile(t, "mpi.yaml", small+"transport: mpi\n")
	writeFile(t, "chunks.yaml", small+"params: {ring: {chunks: [1K]}}\n")
	for _, m := range []struct {
		args   string
		status int
		says   string
	}{
		{"allreduce", 2, `unknown collective "allreduce" (did you mean all_reduce?)`},
		{"op_gather", 2, "barrier can be measured as well"},
		{"--workload lenet", 2, `unknown workload "lenet": want one of lenet5, resnet50, bert_base, vgg16, gpt2_small`},
		{"--workload lenet5 --dtype float64", 2, "--workload: the network determines what is measured; only --ranks, "},
		{"all_reduce --workload lenet5", 2, "--workload: the network determines what is measured"},
		{"--workload lenet5 --compute=-1s", 2, "--compute -1s: want 0 or more"},
		{"-b 4KB", 2, `"4KB" is not a size in bytes; KB can mean powers of 1000 or 1024: write 4KiB for 1024`},
		{"-b 0", 2, "at least one byte"},
		{"-b 2K -e 1K", 2, "--begin 2KiB is more than --end 1KiB"},
		{"-f 1", 2, "--factor 1"},
		{"--factor=-2", 2, "--factor -2"},
		{"--ranks 0", 2, "0 ranks: from 1 to 65536 are possible"},
		{"--ranks 2,2", 2, "2 is there twice"},
		{"--algorithm ring,ring", 2, "ring is there twice"},
		{"--dtype half", 2, `unknown dtype "half"`},
		{"--op mean", 2, `unknown op "mean"`},
		{"--root 2 --ranks 2", 2, "root 2 is not a rank of 2"},
		{"broadcast --root 7", 1, "root 7 is not a rank of 2"},
		{"--time 5", 2, "--time"},
		{"--time=-5s", 2, "time -5s"},
		{"--warmup=-1", 2, "warm-up of -1 calls"},
		{"--min-calls 5 --max-calls 4", 2, "5 to 4 calls"},
		{"--transport local,local", 2, "--transport: local is there twice"},
		{"--config a.yaml,a.yaml", 2, "--config: a.yaml is there twice"},
		{"--topology ring_1d,ring_1d", 2, "--topology: ring_1d is there twice"},
		{"--topology cube", 2, "cube"},
		{"--topology ring_1d:2x2", 2, "want a kind, and for a 2-D kind its extents, as in torus_2d:3x2"},
		{"--param ring=64KiB", 2, "want an entry, a parameter and its values, as in ring.chunk=64KiB,1MiB"},
		{"--param ring.chunk=64KiB,64KiB", 2, "64KiB is there twice"},
		{"--param ring.chunk=64KiB --param ring.chunk=1MiB", 2, "parameter ring.chunk is there twice"},
		{"--param rnig.chunk=64KiB", 2, `error: --param rnig: there is no entry "rnig" in algorithms (did you mean ring?)`},
		{"--param ring.chunks=1K", 2, "error: --param ring.chunks: unknown key (did you mean chunk?)"},
		{"--param ring.chunk=abc", 2, "error: --param ring.chunk: "},
		{"--ranks 2 -e 4 --algorithm direct,rnig", 2, `error: --algorithm rnig: there is no entry "rnig" in algorithms (did you mean ring?)`},
		{"--memory heap", 2, `unknown memory "heap": want private or alloc`},
		{"--memory alloc,alloc", 2, "alloc is there twice"},
		{"--transport local,foobar", 2, `error: --transport foobar: unknown transport "foobar"`},
		{"--transport local,mpi", 2, `error: --transport mpi: transport "mpi" is not available: this program links no package that provides it`},
		{"--compute=-1s", 2, "--compute -1s: want 0 or more"},
		{"--compute 1ms --jitter 2", 2, "a jitter of 2: from 0 to 1 is possible"},
		{"--compute 1ms --jitter nan", 2, "a jitter of NaN: from 0 to 1 is possible"},
		{"--jitter 0.5", 2, "a jitter needs a time to compute"},
		{"--buckets=-1", 2, "-1 calls in a row: from 1 to 1024 are possible"},
		{"--plot a.pdf", 2, "--plot a.pdf: the name must end in .svg"},
		{"--compare a.json", 2, "--compare takes two files"},
		{"--compare a.json b.json --ranks 2", 2, "--compare takes two files of --json, and no other flag"},
		{"--compare not.json missing.json", 1, "not.json is not what goccl bench --json writes"},
		{"--compare missing.json not.json", 1, "missing.json"},
		{"--out a", 2, "--out and --fresh need --sweep"},
		{"--fresh", 2, "--out and --fresh need --sweep"},
		{"--sweep a.yaml --ranks 2", 2, "only --out and --fresh can be combined with it"},
		{"--sweep missing.yaml", 1, "missing.yaml"},
		{"--sweep rign.yaml", 1, `rign.yaml:4:22: algorithms[2]: there is no entry "rign" in algorithms (did you mean ring?)`},
		{"--sweep mpi.yaml", 1, `mpi.yaml:4:12: transport: transport "mpi" is not available: this program links no package that provides it`},
		{"--sweep chunks.yaml", 1, "chunks.yaml:4:25: params.ring.chunks: unknown key (did you mean chunk?)"},
		{"--sweep bad.yaml", 1, "bad.yaml:2:1: rank: unknown key (did you mean ranks?)"},
		{"--config missing.yaml", 1, "missing.yaml"},
		{"--ranks 2 -e 4 --json new.json --csv missing/a.csv", 1, "missing/a.csv: no such file or directory"},
		{"--ranks 2 -e 4 --plot missing/a.svg", 1, "missing/a.svg: no such file or directory"},
	} {
		require.Contains(t, failed(t, m.status, strings.Fields("bench "+m.args)...), m.says, m.args)
	}
	for _, m := range []struct{ args, says string }{
		{"gather --ranks 2 -e 4 --algorithm doubletree", "(chosen by --algorithm)"},
		{"--ranks 2 -e 4 --algorithm grid", "which is for the topologies"},
		{"--ranks 9999 -b 1024G -e 1024G", "of memory, and"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, 1, run(t.Context(), strings.Fields("bench "+m.args), &stdout, &stderr), m.args)
		require.Contains(t, stderr.String(), m.says, m.args)
	}
	require.NoFileExists(t, "new.json")
	require.Contains(t, printed(t, "bench", "--help"), "--out-of-place")
	var stderr bytes.Buffer
	require.Equal(t, 1, run(t.Context(), bench("--ranks=2", "-e4"), brokenWriter{}, &stderr))
	require.Contains(t, stderr.String(), "no room")
}

// An entry that one of several configurations does not have is refused there, and measured with the others.
func TestBenchEntryOfOneConfiguration(t *testing.T) {
	alone(t)
	writeFile(t, "a.yaml", "version: 1\nalgorithms: {direct: {module: direct}, tree: {module: tree}}\ndefaults: {algorithm: direct}\n")
	writeFile(t, "b.yaml", "version: 1\nalgorithms: {direct: {module: direct}}\ndefaults: {algorithm: direct}\n")
	writeFile(t, "sweep.yaml", "version: 1\nconfig: [a.yaml, b.yaml]\nalgorithms: [tree, direct]\nranks: 2\nbytes: 64\nwarmup: 0\nmin_calls: 1\nmax_calls: 1\n")
	for _, args := range [][]string{bench("--config=a.yaml,b.yaml", "--algorithm=tree,direct", "--ranks=2", "-b64", "-e64"), {"bench", "--sweep=sweep.yaml"}} {
		text := printed(t, args...)
		require.Contains(t, text, "64 tree   refused: b.yaml has no entry tree; entries: direct\n", "%v", args)
		require.Len(t, regexp.MustCompile(`(?m)^ *64 tree +[\d.]+ `).FindAllString(text, -1), 1, text)
		require.Len(t, regexp.MustCompile(`(?m)^ *64 direct +[\d.]+ `).FindAllString(text, -1), 2, text)
	}
	require.Contains(t, failed(t, 2, bench("--config=a.yaml,b.yaml", "--algorithm=ring", "--ranks=2")...), "--algorithm ring: there is no entry")
}

// If nothing can be measured, the reason is the error; if anything can, it is not.
func TestBenchRefused(t *testing.T) {
	alone(t)
	writeFile(t, "ccl.yaml", "version: 1\nalgorithms: {direct: {module: direct}}\nrules: [{bytes: \"1KiB-\", algorithm: direct}]\n")
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run(t.Context(), bench("--ranks=2", "-b4", "-e16", "--csv=a.csv"), &stdout, &stderr))
	require.Contains(t, stdout.String(), "refused: not implemented: no rule of ccl.yaml matches")
	require.Contains(t, stderr.String(), "nothing was measured: ccl: all_reduce (float32, sum, 4 bytes, 2 ranks): not implemented")
	require.FileExists(t, "a.csv")
	printed(t, bench("--ranks=2", "-b16", "-e1K", "-f64")...)
}

func TestBenchFiles(t *testing.T) {
	alone(t)
	text := printed(t, bench("all_reduce", "barrier", "--ranks=2", "-b64", "-e1K", "-f16", "--csv=a.csv", "--json=a.json", "--plot=a.svg", "--dtype=int32")...)
	require.True(t, strings.HasSuffix(text, "written: a.csv\nwritten: a.json\nwritten: a.svg\n"), text)

	f, err := os.Open("a.csv")
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Equal(t, measure.Columns, lines[0])
	entries := map[string]int{}
	for _, line := range lines[1:] {
		entries[strings.Join(line[:5], " ")]++
	}
	delete(entries, "yardstick all_reduce core_to_core int32 sum")
	delete(entries, "yardstick barrier core_to_core  ")
	require.Equal(t, map[string]int{
		"goccl all_reduce auto int32 sum": 2, "goccl barrier   ": 1,
		"yardstick all_reduce own_copy int32 sum": 2, "yardstick all_reduce peer_copy int32 sum": 2, "yardstick all_reduce barrier int32 sum": 2,
	}, entries)

	d, err := measure.ReadFile("a.json")
	require.NoError(t, err)
	require.Len(t, d.Results, 3)
	require.Equal(t, measure.Config{File: "built-in ccl.yaml", FoundBy: "built in"}, d.Config)
	require.WithinDuration(t, time.Now(), d.Date, time.Minute)
	require.Equal(t, "direct", d.Results[1].Algorithms()[0].Ran)
	picture, err := os.ReadFile("a.svg")
	require.NoError(t, err)
	require.Contains(t, string(picture), "all_reduce of int32 by sum, in place, 2 ranks")

	require.Contains(t, failed(t, 1, bench("--ranks=2", "-e4", "--json=missing/a.json", "--csv=b.csv")...), "missing/a.json")
	require.NoFileExists(t, "b.csv", "nothing is measured, and nothing is left")
	require.Contains(t, failedAfter(t, bench("barrier", "--ranks=2", "--plot=b.svg")...), "nothing to draw")
}

// failedAfter returns the standard error of a command that has printed something before it
// failed.
func failedAfter(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run(t.Context(), args, &stdout, &stderr), "%s", stdout.String())
	require.NotEmpty(t, stdout.String())
	return stderr.String()
}

// interrupter is a standard output that interrupts the program at the n-th line that
// contains a text.
type interrupter struct {
	out   bytes.Buffer
	text  string
	n     int
	event func()
}

func (w *interrupter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		if w.n--; w.n == 0 {
			w.event()
		}
	}
	return w.out.Write(p)
}

// Results measured before an interrupt are kept.
func TestBenchInterrupted(t *testing.T) {
	alone(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &interrupter{text: " auto ", n: 2, event: cancel}
	var stderr bytes.Buffer
	require.Equal(t, 1, run(ctx, bench("--ranks=2", "-e1K", "--json=a.json"), out, &stderr))
	require.Equal(t, "goccl: error: interrupted\n", stderr.String())
	d, err := measure.ReadFile("a.json")
	require.NoError(t, err)
	require.Len(t, d.Results, 2)

	stderr.Reset()
	require.Equal(t, 1, run(ctx, bench("--ranks=2", "-e1K", "--json=b.json"), out, &stderr))
	require.NoFileExists(t, "b.json", "there is nothing to keep")
}

const smallSweep = `version: 1
title: Small
algorithms: [direct, ring]
ranks: [2, 3]
bytes: [64, 1KiB]
in_place: [true, false]
time: 1ms
warmup: 0
min_calls: 2
max_calls: 2
`

// An interrupted sweep continues with the first missing cell, and mixes nothing.
func TestSweepResumes(t *testing.T) {
	alone(t)
	require.NoError(t, os.Mkdir("in", 0o700))
	writeFile(t, "in/small.yaml", smallSweep)
	ctx, cancel := context.WithCancel(t.Context())
	out := &interrupter{text: " direct ", n: 3, event: cancel}
	var stderr bytes.Buffer
	require.Equal(t, 1, run(ctx, []string{"bench", "--sweep=in/small.yaml"}, out, &stderr))
	require.Contains(t, out.out.String(), "8 cells, 0 done already")
	require.Equal(t, "goccl: error: interrupted; 3 of 8 cells are done, and the same command continues from there\n", stderr.String())
	cells := func() map[string]string {
		files, err := filepath.Glob("small-results/cells/*")
		require.NoError(t, err)
		all := map[string]string{}
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			all[file] = string(text)
		}
		return all
	}
	before := cells()
	require.Len(t, before, 3)
	require.NoFileExists(t, "small-results/report.html")

	text := printed(t, "bench", "--sweep=in/small.yaml")
	require.Contains(t, text, "8 cells, 3 done already")
	after := cells()
	require.Len(t, after, 8)
	require.Subset(t, after, before)
	require.True(t, strings.HasSuffix(text, "written: small-results/results.json\nwritten: small-results/results.csv\nwritten: small-results/report.html\n"), text)
	d, err := measure.ReadFile("small-results/results.json")
	require.NoError(t, err)
	require.Len(t, d.Results, 8)
	page, err := os.ReadFile("small-results/report.html")
	require.NoError(t, err)
	require.Equal(t, 5, strings.Count(string(page), "<svg xmlns"), "four sections, and over the ranks")

	text = printed(t, "bench", "--sweep=in/small.yaml")
	require.Contains(t, text, "8 cells, 8 done already")
	require.Equal(t, after, cells())

	writeFile(t, "ccl.yaml", "version: 1\ndefaults: {algorithm: ring, timeout: 9s}\nalgorithms: {direct: {module: direct}, ring: {module: ring}}\n")
	require.Contains(t, failed(t, 1, "bench", "--sweep=in/small.yaml"), "small-results has results of another configuration")
	writeFile(t, "in/ccl.yaml", "version: 1\nalgorithms: {direct: {module: direct}, ring: {module: ring}}\n")
	writeFile(t, "in/small.yaml", smallSweep+"config: ccl.yaml\n")
	require.Contains(t, failed(t, 1, "bench", "--sweep=in/small.yaml"), "another text of the sweep file")
	text = printed(t, "bench", "--sweep=in/small.yaml", "--fresh")
	require.Contains(t, text, "8 cells, 0 done already")
	require.Contains(t, text, "configuration  in/ccl.yaml (the sweep file)\n")
	text = printed(t, "bench", "--sweep=in/small.yaml", "--out=elsewhere")
	require.Contains(t, text, "written: elsewhere/report.html\n")

	writeFile(t, "in/small.yaml", smallSweep+"config: missing.yaml\n")
	require.Contains(t, failed(t, 1, "bench", "--sweep=in/small.yaml"), "in/missing.yaml")
	writeFile(t, "in/small.yaml", smallSweep+"transport: mpi\n")
	require.Contains(t, failed(t, 1, "bench", "--sweep=in/small.yaml"), `transport "mpi" is not available: this program links no package that provides it`)
}

// compareRow is a result with one algorithm; times are medians.
func compareRow(bytes int, entry string, us, peer, barrier float64) measure.Result {
	c := measure.Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, Bytes: bytes, InPlace: true}
	return measure.Result{Case: c, Rows: []measure.Row{
		{Library: measure.Yardstick, Entry: measure.PeerCopy, Calls: 9, P50: peer},
		{Library: measure.Yardstick, Entry: measure.Barrier, Calls: 9, P50: barrier},
		{Library: measure.Library, Entry: entry, Calls: 9, P50: us},
	}}
}

// The reason of a rejection does not repeat the row.
func TestWithoutShape(t *testing.T) {
	for message, want := range map[string]string{
		"ccl: all_reduce (float32, sum, 4 bytes, 2 ranks): not implemented: no rule": "not implemented: no rule",
		"ccl: all_reduce: grid is for others (a.yaml:3)":                             "grid is for others (a.yaml:3)",
		"ccl: broadcast: not this one":                                               "ccl: broadcast: not this one",
		"something else (of this kind): happened":                                    "something else (of this kind): happened",
	} {
		require.Equal(t, want, withoutShape("all_reduce", message))
	}
}

// A combination that cannot be is a row that says why, and the others are measured.
func TestBenchImpossible(t *testing.T) {
	alone(t)
	text := printed(t, bench("--ranks=2,3", "-b64", "-e64", "--topology=torus_2d:3x1,ring_1d", "--algorithm=direct,ring", "--json=a.json")...)
	require.Contains(t, text, "\nall_reduce of float32 by sum, in place, 2 ranks, torus_2d:3x1\n")
	require.Regexp(t, `(?m)^ +64 all +refused: .*torus_2d with count=2 w=3 h=1`, text)
	require.Equal(t, 1, strings.Count(text, " refused: "))
	d, err := measure.ReadFile("a.json")
	require.NoError(t, err)
	require.Len(t, d.Results, 4)
	require.NotEmpty(t, d.Results[0].Rows[0].Refused)
	require.Positive(t, d.Results[1].Algorithms()[0].Calls)

	require.Contains(t, failedAfter(t, bench("--ranks=2", "-e4", "--topology=torus_2d:3x1")...), "nothing was measured: ")
	require.Contains(t, failed(t, 2, bench("--ranks=2", "-e4", "--transport=local,mpi")...), `--transport mpi: transport "mpi" is not available: this program links no package that provides it`, "a mistake is found before anything is measured")
	require.Contains(t, failed(t, 2, bench("--ranks=2", "-e4", "--algorithm=direct,rnig")...), "did you mean ring?")
}

// The table of results that never change.
func TestBenchGolden(t *testing.T) {
	d := &measure.Document{
		Machine: measure.Machine{CPU: "a cpu", Cores: 2, GOMAXPROCS: 2, OS: "linux", Arch: "amd64", Go: "go1.26", Load: "0.5", ClockNS: 20},
		Config:  measure.Config{File: "a.yaml, b.yaml", FoundBy: "--config"},
	}
	row := func(library, entry string, us float64) measure.Row {
		return measure.Row{Library: library, Entry: entry, Calls: 9, P50: us, P90: 2 * us, P99: 30 * us, Min: us / 2, Whole: us * 1.1, CPU: 2, BusBW: 1000 / us, XOwnCopy: us, XPeerCopy: us / 2, XFloor: us * 2}
	}
	result := func(collective string, bytes, ranks int, rows ...measure.Row) measure.Result {
		c := measure.Case{Collective: collective, DType: "float32", Op: "sum", Ranks: ranks, Bytes: bytes, InPlace: true}
		return measure.Result{Case: c, Transport: "local", Topology: "torus_2d:3x1", Config: "b.yaml", Rows: append([]measure.Row{
			row(measure.Yardstick, measure.OwnCopy, 1), row(measure.Yardstick, measure.PeerCopy, 2), row(measure.Yardstick, measure.Floor, 0.5),
			row(measure.Yardstick, measure.Barrier, 0.25),
		}, rows...)}
	}
	auto, ring, wrong := row(measure.Library, "auto", 1.5), row(measure.Library, "ring", 12345), row(measure.Library, "ring", 12)
	auto.Ran, ring.Params, wrong.Params, wrong.Memory, wrong.Errors = "direct", "chunk=64KiB", "chunk=64KiB", measure.Alloc, 3
	refused := measure.Row{Library: measure.Library, Entry: "grid", Refused: "ccl: all_reduce (float32, sum, 64 bytes, 3 ranks): not implemented: not for rings"}
	failed := measure.Row{Library: measure.Library, Entry: measure.AllEntries, Failed: "rank 1 died"}
	barrier := measure.Result{Case: measure.Case{Collective: "barrier", Ranks: 2}, Transport: "shm", Rows: []measure.Row{row(measure.Library, "", 0.3)}}
	all := []measure.Result{
		result("all_reduce", 64, 3, auto, ring, wrong, refused), result("all_reduce", 1<<20, 3, auto, ring, wrong, refused),
		result("reduce_scatter", 64, 3, ring), {Case: result("reduce_scatter", 4096, 3).Case, Transport: "local", Topology: "torus_2d:3x1", Config: "b.yaml", Rows: []measure.Row{failed}},
		result("broadcast", 64, 2, auto), barrier,
	}
	var cases []measure.Case
	for _, r := range all {
		cases = append(cases, r.Case)
	}
	for file, markdown := range map[string]bool{"bench.txt": false, "bench_markdown.txt": true} {
		var out strings.Builder
		table := newBenchTable(&out, stderr{io.Discard}, d, markdown)
		next := 0
		require.NoError(t, table.measureAll(cases, func(measure.Case) (measure.Result, error) {
			next++
			return all[next-1], nil
		}))
		golden(t, filepath.Join("testdata", file), out.String())
		d.Results = nil
	}
}

// No table is wider than a page.
func TestBenchWidth(t *testing.T) {
	alone(t)
	text := printed(t, bench("reduce_scatter", "barrier", "--ranks=3", "-b1M", "-e1M", "--algorithm=auto", "--out-of-place", "--json=a.json")...)
	text += printed(t, bench("reduce_scatter", "--ranks=3", "-b1M", "-e1M", "--param=ring.chunk=256KiB", "--memory=private,alloc", "--compute=20us")...)
	tables, lines := regexp.MustCompile(`(?ms)^ *(size |)entry .*?^\S`).FindAllString(text, -1), 0
	require.Len(t, tables, 3)
	for _, table := range tables {
		for line := range strings.Lines(table) {
			require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 120, line)
			lines++
		}
	}
	require.GreaterOrEqual(t, lines, 9)
}

func TestCompare(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	require.NoError(t, err)
	alone(t)
	barrier := measure.Result{Case: measure.Case{Collective: "barrier", Ranks: 2}, Rows: []measure.Row{{Library: measure.Library, Calls: 9, P50: 0.25}}}
	wrong := compareRow(4<<20, "direct", 900, 900, 1)
	wrong.Rows[2].Errors = 1
	refused := compareRow(8<<20, "grid", 0, 0, 0)
	refused.Rows[2].Calls = 0
	write := func(file string, results ...measure.Result) {
		d := measure.Document{Version: 1, Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Machine: measure.Machine{CPU: "cpu of " + file, Cores: 2, GOMAXPROCS: 2, OS: "linux", Arch: "amd64", Go: "go1.26"}, Results: results}
		require.NoError(t, d.WriteFile(file))
	}
	write("a.json",
		compareRow(64, "direct", 1, 9, 1), compareRow(256, "direct", 1, 9, 1), compareRow(1024, "direct", 1, 9, 1), compareRow(4096, "direct", 2, 2, 1),
		compareRow(16<<10, "direct", 4, 4, 1), compareRow(1<<20, "ring", 99, 99, 1), compareRow(4<<20, "direct", 900, 900, 1), barrier, refused)
	write("b.json",
		compareRow(64, "direct", 1.05, 9, 1),   // the same
		compareRow(256, "direct", 1.5, 9, 1.5), // with the machine
		compareRow(1024, "direct", 1.5, 90, 1), // slower, and the barrier is not
		compareRow(4096, "direct", 1, 2, 9),    // faster, and the copy is not
		compareRow(16<<10, "direct", 4, 8, 1),  // as fast as before, on a machine that is slower
		compareRow(1<<20, "direct", 88, 99, 1), wrong, barrier, refused)
	golden(t, filepath.Join(testdata, "compare.txt"), printed(t, "bench", "--compare", "a.json", "b.json"))
}
