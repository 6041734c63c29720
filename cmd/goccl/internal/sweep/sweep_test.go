package sweep

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/topology"
)

const allKeys = `version: 1
title: Everything
config: [rules/ccl.yaml, b.yaml]
topology: [ring_1d, torus_2d:2x1]
transport: [local, shm]
collectives: [all_reduce, all_gather, broadcast, barrier]
algorithms: [direct, auto]
params: {ring: {chunk: [64KiB, 1MiB], arity: 2}, tree: {on: true}}
memory: [private, alloc]
ranks: [2, 3]
bytes: {begin: 4, end: 1K, factor: 2}
dtypes: [float32, uint8]
ops: [sum, max]
in_place: [true, false]
root: 1
consume: true
compute: 250us
jitter: 0.25
buckets: 3
time: 10ms
warmup: 0
min_calls: 3
max_calls: 4
`

func TestParse(t *testing.T) {
	f, err := Parse("dir/a.yaml", allKeys)
	require.NoError(t, err)
	f.values = nil // positions
	require.Equal(t, &File{
		Path: "dir/a.yaml", Text: allKeys, Title: "Everything",
		Configs:    []string{filepath.Join("dir", "rules", "ccl.yaml"), filepath.Join("dir", "b.yaml")},
		Topologies: []measure.Grid{{Kind: topology.Ring1D}, {Kind: topology.Torus2D, W: 2, H: 1}},
		Transports: []string{"local", "shm"},
		Setup: measure.Setup{
			Entries:   []string{"direct", "auto"},
			EntriesBy: "dir/a.yaml:7",
			Params:    []measure.Param{{Entry: "ring", Key: "chunk", Values: []string{"64KiB", "1MiB"}}, {Entry: "ring", Key: "arity", Values: []string{"2"}}, {Entry: "tree", Key: "on", Values: []string{"true"}}},
			Memory:    []string{"private", "alloc"},
			Budget:    measure.Budget{Time: 10 * time.Millisecond, MinCalls: 3, MaxCalls: 4},
		},
		Plan: measure.Plan{
			Collectives: []string{"all_reduce", "all_gather", "broadcast", "barrier"},
			DTypes:      []string{"float32", "uint8"},
			Ops:         []string{"sum", "max"},
			Ranks:       []int{2, 3},
			Bytes:       []int{4, 8, 16, 32, 64, 128, 256, 512, 1024},
			InPlace:     []bool{true, false},
			Root:        1,
			Consume:     true,
			Compute:     250 * time.Microsecond,
			Jitter:      0.25,
			Buckets:     3,
		},
	}, f)

	f, err = Parse("dir/least.yaml", "version: 1\nranks: 2\nbytes: [1MiB, 64]\n")
	require.NoError(t, err)
	f.values = nil // positions
	require.Equal(t, &File{
		Path: "dir/least.yaml", Text: "version: 1\nranks: 2\nbytes: [1MiB, 64]\n", Title: "least.yaml",
		Plan: measure.Plan{
			Collectives: []string{"all_reduce"}, DTypes: []string{"float32"}, Ops: []string{"sum"},
			Ranks: []int{2}, Bytes: []int{1 << 20, 64}, InPlace: []bool{true},
		},
		Setup: measure.Setup{Budget: measure.DefaultBudget},
	}, f)

	f, err = Parse("a.yaml", "version: 1\nranks: 2\nbytes: 4\ncompute: 1ms\n")
	require.NoError(t, err)
	require.Equal(t, 0.1, f.Plan.Jitter)
	require.Equal(t, 4, f.Plan.Buckets)
}

// The repository's example is valid and takes less than a minute.
func TestExample(t *testing.T) {
	f, err := Load("../../../../docs/guides/sweep.yaml")
	require.NoError(t, err)
	const yardsticks = 4
	rows := len(f.Plan.Cases()) * (len(f.Setup.Entries) + yardsticks)
	require.Less(t, time.Duration(rows)*f.Setup.Budget.Time, time.Minute)
	_, err = Load("missing.yaml")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Every mistake is reported with its line, and a misspelt name with the nearest valid one.
func TestStrictness(t *testing.T) {
	const head = "version: 1\nranks: [2]\nbytes: [4]\n"
	for _, m := range []struct{ text, says string }{
		{"", "a.yaml: the file is empty; it has to begin with version: 1"},
		{"# nothing\n", "the file is empty"},
		{"[1]", "a.yaml:1:1: want a mapping (key: value), got a list"},
		{"a: [", "a.yaml:1: not YAML: "},
		{head + "---\nversion: 1\n", "a.yaml:4: a second document"},
		{"ranks: 2\nbytes: 4\n", "version is missing"},
		{"version: 1\nbytes: 4\n", "ranks is missing"},
		{"version: 2\nranks: 2\nbytes: 4\n", "a.yaml:1:10: version: the number 2 is not a known version; it has to be 1"},
		{head + "algorithm: ring\n", "a.yaml:4:1: algorithm: unknown key (did you mean algorithms?); known keys: algorithms, buckets, bytes, "},
		{head + "colour: red\n", "a.yaml:4:1: colour: unknown key; known keys"},
		{head + "ranks: [3]\n", "a.yaml:4:1: ranks: duplicate key; it stands on line 2 already"},
		{head + "dtypes: [float]\nops: [mean]\ncolour: red\n", "\na.yaml:5:7: ops[1]: unknown op \"mean\" (did you mean avg?); use one of sum, avg, product, min, max, band, bor, bxor, land, lor, lxor\na.yaml:6:1: colour: "},
		{head + "dtypes: [float]\n", `a.yaml:4:10: dtypes[1]: unknown dtype "float"`},
		{head + "ops:\n  - sum\n  - mean\n", `a.yaml:6:5: ops[2]: unknown op "mean"`},
		{head + "collectives: allreduce\n", `(did you mean all_reduce?)`},
		{head + "algorithms: []\n", "a.yaml:4:13: algorithms: the list is empty"},
		{head + "algorithms: [ring, ring]\n", "a.yaml:4:20: algorithms[2]: ring stands in the list twice"},
		{head + "algorithms: {ring: 1}\n", "a.yaml:4:13: algorithms: want a text or a number, got a mapping"},
		{head + "algorithms: &x [ring]\nops: *x\n", "a.yaml:4:13: algorithms: anchors (&x) and aliases are not supported; write the values out"},
		{head + "title:\n", "a.yaml:4:7: title: there is no value; give one, or remove the key"},
		{head + "in_place: yes\n", `a.yaml:4:11: in_place: want true or false, got the text "yes"`},
		{head + "time: 5\n", "a.yaml:4:7: time: want a duration with its unit, such as 60s or 1m30s; got the number 5"},
		{head + "time: 0s\n", "time 0s"},
		{head + "warmup: many\n", `a.yaml:4:9: warmup: want a whole number such as 4, in decimal digits without quotes; got the text "many"`},
		{head + "min_calls: 5\nmax_calls: 4\n", "5 to 4 calls"},
		{head + "config: [a.yaml, ./a.yaml]\n", "a.yaml:4:18: config[2]: ./a.yaml stands in the list twice"},
		{head + "topology: ring\n", `a.yaml:4:11: topology: topology: unknown kind "ring" (did you mean ring_1d?)`},
		{head + "topology: torus_2d:2\n", `a.yaml:4:11: topology: "torus_2d:2": want a kind`},
		{head + "params: [ring]\n", "a.yaml:4:9: params: want a mapping"},
		{head + "params: {ring: {chunk: {a: b}}}\n", "a.yaml:4:24: params.ring.chunk: want a value, got a mapping"},
		{head + "params: {ring: {chunk: [1KiB, 1KiB]}}\n", "a.yaml:4:31: params.ring.chunk[2]: 1KiB stands in the list twice"},
		{head + "params: {ring: {chunk: '1KiB,2KiB'}}\n", `a.yaml:4:24: params.ring.chunk: several values are a list: write [1KiB,2KiB]`},
		{head + "params: {ring: {chunk: ''}}\n", `a.yaml:4:24: params.ring.chunk: "" is no value of a parameter`},
		{head + "params: {ring: {}}\n", "a.yaml:4:16: params.ring: there is no parameter"},
		{head + "memory: shared\n", `unknown memory "shared"`},
		{head + "compute: -1ms\n", "computing for -1ms"},
		{head + "jitter: 0.1\n", "a jitter needs a time to compute"},
		{head + "compute: 1ms\njitter: 2\n", "a.yaml:5:9: jitter: 2 is not a share: want a number from 0 to 1"},
		{head + "buckets: 0\n", "a.yaml:4:10: buckets: the number 0 is out of range"},
		{head + "root: 2\n", "root 2 is not a rank of 2"},
		{"version: 1\nranks: [2, 0]\nbytes: 4\n", "a.yaml:2:12: ranks[2]: the number 0 is out of range: from 1 to 65536 are allowed"},
		{"version: 1\nranks: 2\nbytes: [4KB]\n", `a.yaml:3:9: bytes[1]: "4KB" is not a size`},
		{"version: 1\nranks: 2\nbytes: {begin: 4}\n", "a.yaml:3:8: bytes: end is missing"},
		{"version: 1\nranks: 2\nbytes: {start: 4, end: 8}\n", "a.yaml:3:9: bytes.start: unknown key; known keys: begin, end, factor"},
		{"version: 1\nranks: 2\nbytes: {begin: 8, end: 4}\n", "a.yaml:3:8: bytes: begin is more than end"},
		{"version: 1\nranks: 2\nbytes: {begin: 4, end: 8, factor: 1}\n", "a.yaml:3:8: bytes: factor is 1"},
	} {
		_, err := Parse("a.yaml", m.text)
		var mistake *config.Error
		require.ErrorAs(t, err, &mistake, m.text)
		require.ErrorContains(t, err, m.says, m.text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(allKeys)
	f.Fuzz(func(t *testing.T, text string) {
		if file, err := Parse("a.yaml", text); err == nil && len(file.Plan.Bytes) == 0 {
			t.Fatal("a sweep of nothing")
		}
	})
}

var cell = measure.Result{
	Case:      measure.Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, Bytes: 64, InPlace: true},
	Transport: "local",
	Rows: []measure.Row{
		{Library: measure.Yardstick, Entry: measure.PeerCopy, Calls: 5, P50: 1, P99: 2, Min: 0.5},
		{Library: measure.Library, Entry: "<direct>", Calls: 5, P50: 1.25, P99: 2.5, Min: 0.75, BusBW: 3, XPeerCopy: 1.25},
		{Library: measure.Library, Entry: "ring", Calls: 5, P50: 7.5, P99: 8.5, Min: 7, BusBW: 1, XPeerCopy: 7.5},
		{Library: measure.Library, Entry: "grid", Refused: `it is not for "ring_1d"`},
	},
}

// halfWritten is a file that a killed process has left: see package atomicfile.
const halfWritten = ".goccl-0123456789abcdef-1"

// Load finds the result of exactly the case that was saved, and ignores a half-written file.
func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	p := Fingerprint{Sweep: "1", Configuration: "2", Machine: "3", Program: "4"}
	s, err := Open(dir, p, false)
	require.NoError(t, err)
	_, done, err := s.Load(0, cell.Case)
	require.NoError(t, err)
	require.False(t, done)

	require.NoError(t, s.Save(0, cell))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cells", halfWritten), []byte("{"), 0o600))
	s, err = Open(dir, p, false)
	require.NoError(t, err)
	r, done, err := s.Load(0, cell.Case)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, cell, r)
	for _, change := range []func(*measure.Case){
		func(c *measure.Case) { c.Bytes *= 2 },
		func(c *measure.Case) { c.Ranks = 3 },
		func(c *measure.Case) { c.DType = "int32" },
		func(c *measure.Case) { c.Op = "max" },
		func(c *measure.Case) { c.Collective = "broadcast" },
		func(c *measure.Case) { c.InPlace = false },
	} {
		other := cell.Case
		change(&other)
		_, done, err = s.Load(0, other)
		require.NoError(t, err)
		require.False(t, done, other)
	}

	_, done, err = s.Load(1, cell.Case)
	require.NoError(t, err)
	require.False(t, done, "of another job")

	other := cell.Case
	other.Consume = true // part of no file name: it is the same in all cells of a sweep
	_, _, err = s.Load(0, other)
	require.ErrorContains(t, err, "it is a result of all_reduce")
	require.NoError(t, os.WriteFile(s.cell(0, cell.Case), []byte("{"), 0o600))
	_, _, err = s.Load(0, cell.Case)
	require.ErrorContains(t, err, "1-all_reduce-float32-sum-2_ranks-in_place-64.json")
}

// Results of different sweeps are never mixed: Open rejects a store of another sweep, and names the
// difference, until its results are discarded.
func TestFingerprints(t *testing.T) {
	dir := t.TempDir()
	p := Fingerprint{"1", "2", "3", "4"}
	s, err := Open(dir, p, false)
	require.NoError(t, err)
	require.NoError(t, s.Save(0, cell))
	for says, other := range map[string]Fingerprint{
		"of another text of the sweep file":     {"x", "2", "3", "4"},
		"of another configuration":              {"1", "x", "3", "4"},
		"of another machine (3)":                {"1", "2", "x", "4"},
		"of another revision of the program":    {"1", "2", "3", "x"},
		"--fresh discards them, or choose anot": {"1", "2", "3", ""},
	} {
		_, err := Open(dir, other, false)
		require.ErrorContains(t, err, says)
	}
	_, done, err := s.Load(0, cell.Case)
	require.NoError(t, err)
	require.True(t, done, "what was refused has changed nothing")

	p.Machine = "x"
	s, err = Open(dir, p, true)
	require.NoError(t, err)
	_, done, err = s.Load(0, cell.Case)
	require.NoError(t, err)
	require.False(t, done)
	_, err = Open(dir, p, false)
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "sweep.json"), []byte("x"), 0o600))
	_, err = Open(dir, p, false)
	require.ErrorContains(t, err, "sweep.json")
	_, err = Open(filepath.Join(dir, "sweep.json"), p, false)
	require.Error(t, err, "a file is no directory")
}

// A store without finished cells accepts another fingerprint, such as that of a corrected file.
// From its first cell on, it accepts only that one.
func TestFingerprintWithoutCells(t *testing.T) {
	dir := t.TempDir()
	misspelt, corrected := Fingerprint{"1", "2", "3", "4"}, Fingerprint{"x", "2", "3", "4"}
	_, err := Open(dir, misspelt, false)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cells", halfWritten), []byte("{"), 0o600))
	s, err := Open(dir, corrected, false)
	require.NoError(t, err)
	require.NoError(t, s.Save(0, cell))
	_, err = Open(dir, misspelt, false)
	require.ErrorContains(t, err, "of another text of the sweep file")
}

// The fingerprint depends on the sweep file and on the settings.
func TestNewFingerprint(t *testing.T) {
	settings := func(algorithm string) []*config.Settings {
		s, err := config.Default().Resolve(config.Request{Ranks: 2, Algorithm: algorithm})
		require.NoError(t, err)
		return []*config.Settings{s}
	}
	p := NewFingerprint(&File{Text: "a"}, settings("ring"))
	require.Empty(t, p.differs(NewFingerprint(&File{Text: "a"}, settings("ring"))))
	require.NotEmpty(t, p.differs(NewFingerprint(&File{Text: "b"}, settings("ring"))))
	require.NotEmpty(t, p.differs(NewFingerprint(&File{Text: "a"}, settings("tree"))))
	require.NotEmpty(t, p.Machine)
}

var reference = regexp.MustCompile(`(?i)(src|href|url|@import)\s*[=(]?\s*["']?\s*(https?:)?//`)

// The report is complete, and refers to no other file.
func TestReport(t *testing.T) {
	settings, err := config.Default().Resolve(config.Request{Ranks: 2})
	require.NoError(t, err)
	f := &File{Path: "a.yaml", Text: "version: 1 # <&>\n", Title: "A & B"}
	d := measure.NewDocument(measure.Config{File: "ccl.yaml", FoundBy: "working directory"})
	barrier := measure.Result{Case: measure.Case{Collective: "barrier", Ranks: 2}, Transport: "local", Rows: []measure.Row{{Library: measure.Library, Calls: 5, P50: 0.22, P99: 1}}}
	refused := measure.Result{Case: measure.Case{Collective: "broadcast", DType: "int32", Ranks: 2, Bytes: 8, InPlace: true}, Rows: cell.Rows[3:]}
	d.Results = append(d.Results, cell, barrier, refused)

	varied := cell
	varied.Config, varied.Topology = "b.yaml", "torus_2d:2x1"
	varied.Rows = append([]measure.Row{}, cell.Rows...)
	varied.Rows[2].Params, varied.Rows[2].Memory = "chunk=1KiB", measure.Alloc
	d.Results = append(d.Results, varied)

	failed := cell
	failed.Ranks, failed.Rows = 3, []measure.Row{{Library: measure.Library, Entry: "ring", Failed: "rank 1 died"}}
	more := cell
	more.Ranks = 4
	d.Results = append(d.Results, failed, more)

	held := []Held{{"a.yaml", settings}, {"b.yaml over shm", settings}}
	page, err := Report(f, d, held)
	require.NoError(t, err)

	text := string(page)
	for _, part := range []string{
		"<title>A &amp; B</title>", "version: 1 # &lt;&amp;&gt;\n", "a.yaml", "ccl.yaml (working directory)", d.Date.Format("02 Jan 2006 15:04"),
		d.Machine.Go, "All results were verified", "algorithms.ring.params.chunk", "256KiB",
		">all_reduce of float32 by sum, in place, 2 ranks over local</h2>", ">all_reduce of float32 by sum, in place, 2 ranks over local, torus_2d:2x1, b.yaml</h2>",
		">ring chunk=1KiB alloc</td>", "held in a.yaml, for 2 ranks", "held in b.yaml over shm, for 2 ranks", ">barrier, 2 ranks over local</h2>", ">broadcast of int32 from rank 0, 2 ranks</h2>",
		"<svg ", "&lt;direct&gt;", `<th>size</th><th>count</th><th>peer copy</th><th class="entry">entry</th>`, `<td rowspan="3">64</td><td rowspan="3">16</td><td rowspan="3">1.000</td><td class="entry">&lt;direct&gt;</td>`,
		`<td class="fastest">1.250</td><td>2.500</td><td>3.00</td><td>1.25</td>`, `<td>7.500</td>`, `<td class="fastest">0.2200</td>`,
		`>refused: it is not for &#34;ring_1d&#34;</td>`, `>failed: rank 1 died</td>`, `<h2 id="across">Over ranks and topologies</h2>`, "all_reduce of float32 by sum, in place over local: over ranks",
	} {
		require.Contains(t, text, part)
	}
	require.Equal(t, 4, strings.Count(text, "<svg xmlns"), "three sections and what varies; there is nothing to draw of a barrier, and of what was not measured")
	require.Empty(t, reference.FindString(text))
	require.NotContains(t, text, "<script")
	require.NotContains(t, text, "<?xml")
	require.NotContains(t, text, "<direct>")

	d.Results[0].Rows = append([]measure.Row{}, cell.Rows...)
	d.Results[0].Rows[2].Errors = 17
	page, err = Report(f, d, held)
	require.NoError(t, err)
	require.Contains(t, string(page), "1 rows have wrong results")
	require.Contains(t, string(page), "17 wrong elements</span>")
	require.NotContains(t, string(page), "All results were verified")
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, WriteFile(path, []byte("1")))
	require.NoError(t, WriteFile(path, []byte("2")))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "2", string(text))
	require.Error(t, WriteFile(filepath.Join(path, "b"), nil), "a file is no directory")
}
