package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const file = `{"version": 1, "results": [
 {"collective": "all_reduce", "dtype": "float32", "op": "sum", "ranks": 2, "bytes": 4, "in_place": true, "transport": "shm", "rows": [
  {"library": "yardstick", "entry": "own_copy", "p50_us": 0.5},
  {"library": "goccl", "entry": "auto", "memory": "private", "p50_us": 2},
  {"library": "goccl", "entry": "grid", "refused": "no"}]}]}`

// Rows that were measured have their time; a rejected one has none.
func TestReadTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	times, err := readTimes(path)
	require.NoError(t, err)
	of := call{Transport: "shm", Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, InPlace: true, Bytes: 4}
	require.Equal(t, map[rowKey]float64{
		{of, contestant{Library: "goccl", Entry: "auto", Memory: "private"}}: 2,
		{of, contestant{Library: "yardstick", Entry: "own_copy"}}:            0.5,
	}, times)
}

// The table has the median of the ratios, which is not the ratio of the medians, and a row
// that only one build has is not in it.
func TestTable(t *testing.T) {
	short := rowKey{
		call{Transport: "local", Collective: "all_reduce", DType: "float32", Op: "sum", Ranks: 2, InPlace: true, Bytes: 4},
		contestant{Library: "goccl", Entry: "auto"},
	}
	long := short
	long.Bytes = 1 << 20
	r := ratios{}
	for _, pass := range [][2]float64{{1, 2}, {10, 10}, {4, 2}} {
		r.add(map[rowKey]float64{long: 8, short: pass[0], {contestant: contestant{Entry: "old"}}: 1}, map[rowKey]float64{long: 6, short: pass[1]})
	}

	var out strings.Builder
	require.NoError(t, r.write(&out))
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, strings.Fields("local all_reduce 2 4 goccl auto 4 2 1.000 0.500 to 2.000"), strings.Fields(lines[1]))
	require.Equal(t, strings.Fields("local all_reduce 2 1048576 goccl auto 8 6 0.750 0.750 to 0.750"), strings.Fields(lines[2]))
	require.NotContains(t, out.String(), "old")
}

// Builds without a common row are an error, not an empty table.
func TestNothingInCommon(t *testing.T) {
	r := ratios{}
	r.add(map[rowKey]float64{{contestant: contestant{Entry: "a"}}: 1}, map[rowKey]float64{{contestant: contestant{Entry: "b"}}: 1})
	require.EqualError(t, r.write(&strings.Builder{}), "the two builds have no case in common")
}

func TestQuartiles(t *testing.T) {
	for _, m := range []struct{ values, want []float64 }{
		{[]float64{3}, []float64{3, 3, 3}},
		{[]float64{2, 1}, []float64{1, 1.5, 2}},
		{[]float64{9, 1, 5, 3, 7, 2, 8, 4, 6}, []float64{3, 5, 7}},
	} {
		low, middle, high := quartiles(m.values)
		require.Equal(t, m.want, []float64{low, middle, high})
	}
}
