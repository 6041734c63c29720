package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cmd/goccl/internal/measure"
)

func checking(args ...string) []string {
	return bench(append([]string{"--check=baseline.json"}, args...)...)
}

func allReduceCase(ranks, bytes int) measure.Case {
	return measure.Case{Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: ranks, Bytes: bytes, InPlace: true}
}

// baselineOf writes a baseline of this machine, with the same ratio for everything.
func baselineOf(t *testing.T, ratio float64, entries ...string) *measure.Baseline {
	t.Helper()
	b := &measure.Baseline{Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Machine: measure.ThisMachine()}
	for _, bytes := range []int{64, 4096} {
		e := measure.Expected{Case: allReduceCase(2, bytes), Ratios: map[string]map[string]float64{}}
		for _, entry := range entries {
			e.Ratios[entry] = map[string]float64{measure.OwnCopy: ratio, measure.PeerCopy: ratio}
		}
		b.Cases = append(b.Cases, e)
	}
	require.NoError(t, b.WriteFile("baseline.json"))
	return b
}

// With a baseline of huge ratios, every case is measured once and is faster.
func TestCheckPasses(t *testing.T) {
	alone(t)
	baselineOf(t, 1e6, "ring", "direct")
	text := printed(t, checking()...)
	require.Regexp(t, `\nbaseline +baseline.json: 2026-01-02 03:04, `, text)
	require.NotContains(t, text, "another machine")
	require.Contains(t, text, "\ncalls: collective all_reduce, type float32, op sum, ranks 2, place in\n")
	require.NotContains(t, text, "Once more")
	for _, row := range []string{
		`64 +direct +(own|peer)_copy +1000000.00 +[\d.]+ +2000000.00 +faster`, `64 +ring +.* faster`,
		`4KiB +direct +.* faster`, `4KiB +ring +.* faster`,
	} {
		require.Regexp(t, `\n`+row+`\n`, text)
	}
}

// A baseline of tiny ratios makes the program fail and name the rows. Two ranks share one
// core here, so that no other program is to blame. All cases are measured twice.
func TestCheckFails(t *testing.T) {
	alone(t)
	baselineOf(t, 1e-6, "direct")
	var stdout, stderr bytes.Buffer
	require.Equal(t, 1, run(t.Context(), checking(), &stdout, &stderr))
	_, again, found := strings.Cut(stdout.String(), "\nMeasured again, since slower or unclear:\n")
	require.True(t, found)
	require.Regexp(t, `\n +64 direct +`, again)
	require.Regexp(t, `\n4KiB +direct +(own|peer)_copy +0.00 +[\d.]+ +[\d.]+ +0.00 +slower\n`, again)
	require.Regexp(t, `^goccl: error: slower than baseline.json allows, twice:
 +all_reduce of float32 by sum, in place, 2 ranks, 64 bytes, direct: [\d.]+ times (own|peer)_copy, and 0.00 in the baseline
 +all_reduce of float32 by sum, in place, 2 ranks, 4096 bytes, direct: .*
 +If this is intended, renew the baseline: goccl bench --check baseline.json --renew
$`, stderr.String())
}

// A measured baseline fails if one ratio in the file is made much smaller, and only
// in that row.
func TestCheckFindsTheRow(t *testing.T) {
	alone(t)
	baselineOf(t, 1, "direct")
	require.Contains(t, printed(t, checking("--renew")...), "written: baseline.json\n")
	b, err := measure.ReadBaseline("baseline.json")
	require.NoError(t, err)
	for yardstick := range b.Cases[0].Ratios["direct"] {
		b.Cases[0].Ratios["direct"][yardstick] *= 1e6 // two calls on one core vary
		b.Cases[1].Ratios["direct"][yardstick] /= 1e6
	}
	require.NoError(t, b.WriteFile("baseline.json"))
	stderr := failedAfter(t, checking()...)
	require.Contains(t, stderr, "2 ranks, 4096 bytes, direct: ")
	require.NotContains(t, stderr, "2 ranks, 64 bytes")
}

// The verdicts alone, without measurements.
func TestCheckedRow(t *testing.T) {
	result := func(company, us, own, peer float64) measure.Result {
		return measure.Result{Case: allReduceCase(2, 64), Company: company, Rows: []measure.Row{
			{Library: measure.Yardstick, Entry: measure.OwnCopy, P50: own},
			{Library: measure.Yardstick, Entry: measure.PeerCopy, P50: peer},
			{Library: measure.Library, Entry: "ring", Calls: 9, P50: us},
		}}
	}
	for _, m := range []struct {
		what      string
		result    measure.Result
		polling   bool
		yardstick string
		verdict   string
		slower    bool
	}{
		{"as it was", result(0, 3, 1, 1.4), true, measure.OwnCopy, "ok", false},
		{"just within", result(0, 5.9, 1, 1.4), true, measure.OwnCopy, "ok", false},
		{"beyond", result(0, 6.2, 1, 1.4), true, measure.OwnCopy, "slower", true},
		{"a tenth was asked for", result(0, 30, 1, 1.4), true, measure.OwnCopy, "slower", true},
		{"own copy has become faster", result(0, 3, 0.1, 1.5), true, measure.PeerCopy, "ok", false},
		{"peer copy has become faster", result(0, 3, 1, 0.1), true, measure.OwnCopy, "ok", false},
		{"beyond by both", result(0, 9, 0.5, 1.5), true, measure.PeerCopy, "slower", true},
		{"beyond, in company", result(0.7, 30, 1, 1.4), true, measure.OwnCopy, "unclear: other programs had 0.70 cores", false},
		{"beyond, in hardly any", result(0.1, 30, 1, 1.4), true, measure.OwnCopy, "slower", true},
		{"beyond, asleep in company", result(1, 30, 1, 1.4), false, measure.OwnCopy, "slower", true},
		{"as it was, in company", result(1, 3, 1, 1.4), true, measure.OwnCopy, "unclear: other programs had 1.00 cores", false},
		{"much faster", result(0, 1.2, 1, 1.4), true, measure.PeerCopy, "faster", false},
		{"without one yardstick", result(0, 9, 0, 1.5), true, measure.PeerCopy, "slower", true},
		{"without any", result(0, 9, 0, 0), true, "", "unclear: no yardstick was measured", false},
	} {
		r := &checkRow{entry: "ring", Expected: measure.Expected{Case: m.result.Case, Ratios: map[string]map[string]float64{
			"ring": {measure.OwnCopy: 3, measure.PeerCopy: 2}}}}
		r.compare(m.result, m.result.Rows[2], m.polling)
		require.Equal(t, []any{m.yardstick, m.verdict, m.slower}, []any{r.last().yardstick, r.last().verdict, r.last().slower}, m.what)
	}
}

// The bound of a barrier, by core to core, is higher.
func TestCheckedBarrier(t *testing.T) {
	for us, want := range map[float64]string{9: "ok", 10.5: "slower", 1.5: "faster"} {
		rows := []measure.Row{{Library: measure.Yardstick, Entry: measure.CoreToCore, P50: 1}, {Library: measure.Library, P50: us}}
		r := &checkRow{Expected: measure.Expected{Case: measure.Case{Collective: "barrier", Ranks: 2}, Ratios: map[string]map[string]float64{"": {measure.CoreToCore: 4}}}}
		r.compare(measure.Result{Case: r.Case, Rows: rows}, rows[1], true)
		require.Equal(t, want, r.last().verdict, "%v", us)
		require.Equal(t, "barrier, 2 ranks", r.String())
	}
}

// A row above its bound the first time but not the second passes; it shows both.
func TestCheckedTwice(t *testing.T) {
	r := &checkRow{entry: "ring", Expected: measure.Expected{Case: allReduceCase(2, 64), Ratios: map[string]map[string]float64{"ring": {measure.PeerCopy: 2}}}}
	for _, us := range []float64{9, 3} {
		rows := []measure.Row{{Library: measure.Yardstick, Entry: measure.PeerCopy, P50: 1}, {Library: measure.Library, Entry: "ring", P50: us}}
		r.compare(measure.Result{Case: r.Case, Rows: rows}, rows[1], true)
	}
	require.Equal(t, []string{"all_reduce", "float32", "sum", "2", "in", "64", "ring", "peer_copy", "2.00", "9.00", "3.00", "4.00", "ok"}, r.cells())
	require.NoError(t, (&guard{baseline: &measure.Baseline{}, document: &measure.Document{}}).judge([]*checkRow{r}))
}

// If ranks would poll here and sleep on the baseline's machine, or vice versa, nothing is
// compared; if all rows are skipped, the check fails.
func TestCheckOnAnotherMachine(t *testing.T) {
	alone(t)
	b := baselineOf(t, 1e-6, "direct")
	b.Machine.Cores, b.Machine.GOMAXPROCS = 2, 2
	require.NoError(t, b.WriteFile("baseline.json"))
	stderr := failedAfter(t, checking()...)
	require.Equal(t, "goccl: error: nothing of baseline.json could be compared. If rows are unclear, check again on a quiet machine; if they are skipped, make a baseline of this one: goccl bench --check baseline.json --renew\n", stderr)

	b.Cases = append(b.Cases, measure.Expected{Case: allReduceCase(3, 64), Ratios: map[string]map[string]float64{"ring": {measure.OwnCopy: 1e6}}})
	require.NoError(t, b.WriteFile("baseline.json"))
	text := printed(t, checking()...)
	require.Contains(t, text, "of another machine, whose caches and cores may have other ratios\n")
	require.Regexp(t, `\n2 +64 +direct +- +- +- +- +skipped: 2 ranks sleep on 1 cores here, and poll on 2 cores there\n`, text)
	require.Regexp(t, `\n3 +64 +ring +own_copy .* faster\n`, text)

	b.Cases[2].Ratios["ring"][measure.OwnCopy] = 1e-6
	require.NoError(t, b.WriteFile("baseline.json"))
	require.Contains(t, failedAfter(t, checking()...), " The baseline is of another machine. Make one here at a commit that you trust, and check again: goccl bench --check baseline.json --renew\n")
}

// A renewed baseline has what was measured of every case, whatever it had before.
func TestCheckRenews(t *testing.T) {
	alone(t)
	b := baselineOf(t, 1, "direct", "ring")
	b.Machine.CPU = "another"
	b.Cases[1].Ratios = map[string]map[string]float64{"ring": {}} // added by hand
	require.NoError(t, b.WriteFile("baseline.json"))
	require.Contains(t, failed(t, 1, checking()...), "baseline.json has no ratios of all_reduce of float32 by sum, in place, 2 ranks, 4096 bytes, ring: goccl bench --check baseline.json --renew")

	text := printed(t, checking("--renew")...)
	require.Equal(t, 3, strings.Count(text, " 64 direct "), "three times, of which the median counts")
	renewed, err := measure.ReadBaseline("baseline.json")
	require.NoError(t, err)
	require.Equal(t, measure.ThisMachine().CPU, renewed.Machine.CPU)
	require.WithinDuration(t, time.Now(), renewed.Date, time.Minute)
	require.Len(t, renewed.Cases, 2)
	require.Equal(t, []string{"direct", "ring"}, renewed.Cases[0].Entries())
	require.Equal(t, []string{"ring"}, renewed.Cases[1].Entries())
	for _, e := range renewed.Cases {
		for _, ratios := range e.Ratios {
			require.Len(t, ratios, 2)
		}
	}
}

// A case that cannot be measured is an error, and the baseline is unchanged.
func TestCheckRefused(t *testing.T) {
	alone(t)
	baselineOf(t, 1e6, "direct", "grid")
	require.Regexp(t, `baseline.json has calls that are refused here:
 +all_reduce of float32 by sum, in place, 2 ranks, 64 bytes, grid
 +all_reduce of float32 by sum, in place, 2 ranks, 4096 bytes, grid
$`, failedAfter(t, checking()...))
	before, err := os.ReadFile("baseline.json")
	require.NoError(t, err)
	require.Regexp(t, `^goccl: error: all_reduce of float32 by sum, in place, 2 ranks, 64 bytes, grid: .*which is for the topologies.*; baseline.json is unchanged\n$`, failedAfter(t, checking("--renew")...))
	baselineOf(t, 1e6, "direct", "gird")
	require.Contains(t, failedAfter(t, checking()...), "did you mean grid?")

	require.NoError(t, os.WriteFile("baseline.json", before, 0o600))
	barrier := strings.Replace(string(before), `"cases": [`, `"cases": [
    {"collective":"barrier","ranks":2,"ratios":{"":{"core_to_core":4}}},`, 1)
	writeFile(t, "baseline.json", strings.ReplaceAll(barrier, `,"grid":{"own_copy":1000000,"peer_copy":1000000}`, ""))
	text := printed(t, checking()...)
	require.Regexp(t, `\nbarrier +- +- +- +- +- +- +unclear: no yardstick was measured\n`, text, "there is one core")
}

func TestMedians(t *testing.T) {
	var results []measure.Result
	for _, us := range []float64{8, 2, 6} {
		results = append(results, measure.Result{Case: allReduceCase(2, 64), Rows: []measure.Row{
			{Library: measure.Yardstick, Entry: measure.OwnCopy, P50: 2}, {Library: measure.Library, Entry: "direct"}, {Library: measure.Library, Entry: "ring", P50: us},
		}})
	}
	require.Equal(t, map[string]float64{measure.OwnCopy: 3}, medians(results, 1))
	require.Equal(t, map[string]float64{measure.OwnCopy: 1}, medians(results[:2], 1), "of two the stricter")
	require.Empty(t, medians(results, 0), "it was refused")
}

func TestCheckMistakes(t *testing.T) {
	alone(t)
	writeFile(t, "baseline.json", `{"version": 1, "cases": [`)
	for _, m := range []struct {
		args   string
		status int
		says   string
	}{
		{"--check baseline.json", 1, "baseline.json is not a baseline of goccl bench --check: unexpected EOF"},
		{"--check baseline.json --renew", 1, "baseline.json is not a baseline of goccl bench --check: unexpected EOF"},
		{"--check missing.json", 1, "missing.json"},
		{"--check baseline.json --ranks 2", 2, "--check: the baseline determines what is measured"},
		{"--check baseline.json all_reduce", 2, "--check: the baseline determines what is measured"},
		{"--check baseline.json --time=-1s", 2, "time -1s"},
		{"--renew", 2, "--renew needs --check"},
	} {
		require.Contains(t, failed(t, m.status, strings.Fields("bench "+m.args)...), m.says, m.args)
	}
}

// `make bench-check` has one small baseline.
func TestCommittedBaseline(t *testing.T) {
	b, err := measure.ReadBaseline(filepath.Join("..", "..", "..", "benchmarks", "baseline.json"))
	require.NoError(t, err)
	entries := 0
	for _, e := range b.Cases {
		for _, entry := range e.Entries() {
			require.NotEmpty(t, e.Ratios[entry], "%s, %s", e.Name(), entry)
			entries++
		}
	}
	require.Less(t, entries, 30)
}
