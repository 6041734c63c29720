package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func someBaseline() *Baseline {
	return &Baseline{
		Date:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Machine: Machine{CPU: "a cpu", Cores: 4, GOMAXPROCS: 2},
		Cases: []Expected{
			{Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, Bytes: 4096, InPlace: true}, map[string]map[string]float64{
				"direct": {OwnCopy: 1.5, PeerCopy: 0.25}, "ring": {}}},
			{Case{Collective: "broadcast", DType: "int64", Ranks: 4, Bytes: 8, InPlace: true, Root: 3, Consume: true}, map[string]map[string]float64{"tree": {PeerCopy: 2}}},
			{Case{Collective: barrier, Ranks: 2}, map[string]map[string]float64{"": {CoreToCore: 3.5}}},
		},
	}
}

// ReadBaseline returns what WriteFile has written. The file has one line per case.
func TestBaselineFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	b := someBaseline()
	require.NoError(t, b.WriteFile(path))
	read, err := ReadBaseline(path)
	require.NoError(t, err)
	require.Equal(t, b.Cases, read.Cases)
	require.Equal(t, b.Machine, read.Machine)
	require.Equal(t, b.Date, read.Date)
	require.Equal(t, []string{"direct", "ring"}, read.Cases[0].Entries())
	require.Contains(t, read.About, "--renew")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(text), `{"collective":`))
	require.Contains(t, string(text), `
    {"collective":"barrier","dtype":"","op":"","ranks":2,"bytes":0,"in_place":false,"root":0,"consume":false,"ratios":{"":{"core_to_core":3.5}}}
  ]
}
`)
}

// ReadBaseline rejects an invalid file. The error names the file and the mistake.
func TestBaselineMistakes(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.json")
	require.NoError(t, someBaseline().WriteFile(good))
	text, err := os.ReadFile(good)
	require.NoError(t, err)
	for _, m := range []struct{ from, to, says string }{
		{"{", "x{", "invalid character"},
		{"\n  ]\n}\n", "", "unexpected EOF"},
		{"\n  ]\n}\n", "]}]}", "it goes on after its end"},
		{`"version": 1`, `"version": 2`, "its version is 2, and this program knows 1"},
		{`"version"`, `"edition"`, `unknown field "edition"`},
		{`"cores": 4`, `"cores": 0`, "its machine has no cores"},
		{`"bytes":4096`, `"bytes":"4KiB"`, "cannot unmarshal string"},
		{`"bytes":4096`, `"bytes":4095`, "case 1, all_reduce of float32 by sum, in place, 2 ranks, 4095 bytes: there is no such call"},
		{`"bytes":4096`, `"bytes":0`, "there is no such call"},
		{`"bytes":4096`, `"bytes":-4`, "there is no such call"},
		{`"all_reduce"`, `"allreduce"`, "did you mean all_reduce?"},
		{`"float32"`, `"half"`, `unknown dtype "half"`},
		{`"op":"sum"`, `"op":"mean"`, `unknown op "mean"`},
		{`"root":0`, `"root":1`, "there is no such call"},
		{`"root":3`, `"root":4`, "case 2, broadcast of int64 from rank 4, result read, 4 ranks, 8 bytes: root 4 is not a rank of 4"},
		{`"ranks":2`, `"ranks":0`, "0 ranks"},
		{`{"direct":{"own_copy":1.5,"peer_copy":0.25},"ring":{}}`, `{}`, "it has no ratios"},
		{`"own_copy"`, `"core_to_core"`, `"direct": 1.5 over "core_to_core" is no ratio`},
		{`"own_copy":1.5`, `"own_copy":0`, `0 over "own_copy" is no ratio`},
		{`"own_copy":1.5`, `"own_copy":-1`, `-1 over "own_copy" is no ratio`},
		{`"direct":`, `"":`, `entry ""`},
		{`"":{"core`, `"ring":{"core`, `entry "ring"`},
	} {
		path := filepath.Join(dir, "bad.json")
		require.Contains(t, string(text), m.from)
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), m.from, m.to, 1)), 0o600))
		_, err := ReadBaseline(path)
		require.ErrorContains(t, err, "bad.json is not a baseline of goccl bench --check: ", "%s -> %s", m.from, m.to)
		require.ErrorContains(t, err, m.says, "%s -> %s", m.from, m.to)
	}
	_, err = ReadBaseline(filepath.Join(dir, "missing.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
	b := someBaseline()
	b.Version = 1
	b.Cases = append(b.Cases, b.Cases[0])
	require.ErrorContains(t, b.validate(), "case 4, all_reduce of float32 by sum, in place, 2 ranks, 4096 bytes, is there twice")
	b.Cases = nil
	require.ErrorContains(t, b.validate(), "it has no cases")
}

func TestRatios(t *testing.T) {
	rows := []Row{
		{Library: Yardstick, Entry: OwnCopy, P50: 2}, {Library: Yardstick, Entry: Barrier, P50: 3}, {Library: Yardstick, Entry: CoreToCore, P50: 0.5},
		{Library: Library, Entry: "ring", P50: 7},
	}
	require.Equal(t, map[string]float64{OwnCopy: 3.5}, Result{Case: Case{Collective: "all_reduce"}, Rows: rows}.Ratios(rows[3]), "a peer copy was not measured")
	require.Equal(t, map[string]float64{CoreToCore: 14}, Result{Case: Case{Collective: barrier}, Rows: rows}.Ratios(rows[3]))
	require.Empty(t, Result{Case: Case{Collective: "all_reduce"}, Rows: rows}.Ratios(Row{Refused: "no"}))
	whole := []Row{{Library: Yardstick, Entry: OwnCopy, P50: 1, Whole: 4}}
	require.Equal(t, map[string]float64{OwnCopy: 1.5}, Result{Case: Case{Collective: "all_reduce"}, Rows: whole}.Ratios(Row{P50: 5, Whole: 6}), "of whole calls")
}

func TestMachinesThatAreLike(t *testing.T) {
	m := Machine{CPU: "a", Cores: 4, GOMAXPROCS: 2, Caches: "L1", OS: "linux", Arch: "amd64"}
	require.True(t, m.Polls(2))
	require.False(t, m.Polls(3))
	later := m
	later.Kernel, later.Go, later.Load, later.Revision, later.Cores = "7", "go2", "9", "abc", 8
	require.True(t, m.Like(later), "it has as many usable cores as before")
	for _, change := range []func(*Machine){
		func(m *Machine) { m.CPU = "b" }, func(m *Machine) { m.GOMAXPROCS = 4 }, func(m *Machine) { m.Caches = "" },
		func(m *Machine) { m.OS = "darwin" }, func(m *Machine) { m.Arch = "arm64" },
	} {
		other := m
		change(&other)
		require.False(t, m.Like(other), "%v", other)
	}
}

// On a machine of four cores this process used two for a second, and other processes one and
// a half.
func TestCompany(t *testing.T) {
	proc := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(proc, "self"), 0o700))
	moment := func(cpu, self string) coreTime {
		require.NoError(t, os.WriteFile(filepath.Join(proc, "stat"), []byte("cpu  "+cpu+"\ncpu0 1 2\ncpu1 1 2\ncpu2 1 2\ncpu3 1 2\nintr 5\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(proc, "self/stat"), []byte("7 (a (b) c) R 1 2 3 4 5 6 7 8 9 10 "+self+" 13 14\n"), 0o600))
		return coreTimes(proc)
	}
	before := moment("1000 100 200 9000 50 6 7 8 900 90", "500 50")
	after := moment("1250 150 240 9030 70 10 9 12 999 99", "650 100")
	require.Equal(t, coreTime{cores: 4, all: 10371, idle: 9050, here: 550}, before)
	require.InDelta(t, 1.5, after.company(before, 4), 1e-9)
	require.InDelta(t, 0.5, after.company(before, 3), 1e-9)
	require.Zero(t, after.company(before, 2), "there was room for all")
	require.Zero(t, after.company(after, 4))
	require.Zero(t, coreTimes(t.TempDir()).company(coreTime{}, 4), "nothing is known")
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		require.Positive(t, coreTimes("/proc").cores)
		require.Positive(t, coreTimes("/proc").all)
	}
}
