package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRowsAreReadAsWritten(t *testing.T) {
	rows := []row{
		{contestant: contestant{"mpich", "tuned"}, ranks: 4, bytes: 1 << 20, cores: "0,2|1|3|3", compute: 250,
			passes: 9, calls: 100, p50: 250, best: 240, p90: 300, p99: 400.5, least: 200.125, errors: 2},
		{contestant: ours, ranks: 2, passes: 1, calls: 20000, p50: 0.25, best: 0.2, p90: 0.3, p99: 0.5, least: 0.125},
	}
	var text strings.Builder
	require.NoError(t, writeRows(&text, rows))
	require.Equal(t, columns+"\n"+
		"mpich,all_reduce,tuned,float32,sum,4,1048576,true,false,\"0,2|1|3|3\",250,9,100,250.000,240.000,300.000,400.500,200.125,4.1943,6.2915,,,2\n"+
		"goccl,barrier,processes,,,2,0,,false,,0,1,20000,0.250,0.200,0.300,0.500,0.125,,,,,0\n", text.String())
	again, err := parseRows(text.String())
	require.NoError(t, err)
	require.Equal(t, rows, again)
}

func TestRowsThatMakeNoSense(t *testing.T) {
	const good = "x,all_reduce,y,float32,sum,2,4,true,false,,0,1,5,1,1,2,2,1,,,,,0\n"
	_, err := parseRows(columns + "\n" + good)
	require.NoError(t, err)
	for text, says := range map[string]string{
		"":                                       "the first line is not",
		good:                                     "the first line is not",
		"hello":                                  "the first line is not",
		columns + "\n" + good + "x,all_reduce\n": "wrong number of fields",
		columns + "\n" + strings.Replace(good, ",2,4,", ",two,4,", 1):      "line 2: no sense in ranks: x,all_reduce",
		columns + "\n" + strings.Replace(good, ",2,4,", ",2,-4,", 1):       "no sense in bytes",
		columns + "\n" + strings.Replace(good, ",5,1,", ",5,NaN,", 1):      "no sense in p50_us",
		columns + "\n" + strings.Replace(good, ",5,1,", ",,-1,", 1):        "no sense in calls, p50_us",
		columns + "\n" + strings.Replace(good, "all_reduce", "barrier", 1): "no sense in collective",
	} {
		_, err := parseRows(text)
		require.ErrorContains(t, err, says, text)
	}
}

// merge returns medians of the passes, and sums of their calls and errors.
func TestMerge(t *testing.T) {
	a, b := contestant{"a", "x"}, contestant{"b", "x"}
	pass := func(c contestant, ranks, bytes int, p50, p99, least float64, errors int, cores string) row {
		return row{contestant: c, ranks: ranks, bytes: bytes, cores: cores, compute: 20, passes: 1, calls: 10,
			p50: p50, best: p50, p90: p99 / 2, p99: p99, least: least, errors: errors}
	}
	merged := merge([]row{
		pass(b, 4, 8, 1, 1, 1, 0, ""),
		pass(a, 4, 8, 5, 50, 4, 0, "0|1|0|1"), pass(a, 2, 8, 7, 7, 7, 0, "0|1"),
		pass(a, 4, 8, 900, 60, 3, 1, "0-1|0-1"), pass(a, 2, 8, 8, 8, 8, 0, "0|1"),
		pass(a, 4, 8, 6, 999, 5, 2, "0|1|0|1"), pass(a, 2, 0, 1, 1, 1, 0, "0|1"),
	})
	require.Equal(t, []row{
		{contestant: a, ranks: 2, bytes: 0, cores: "0|1", compute: 20, passes: 1, calls: 10, p50: 1, best: 1, p90: 0.5, p99: 1, least: 1},
		{contestant: a, ranks: 2, bytes: 8, cores: "0|1", compute: 20, passes: 2, calls: 20, p50: 7.5, best: 7, p90: 3.75, p99: 7.5, least: 7},
		{contestant: b, ranks: 4, bytes: 8, compute: 20, passes: 1, calls: 10, p50: 1, best: 1, p90: 0.5, p99: 1, least: 1},
		{contestant: a, ranks: 4, bytes: 8, cores: "0|1|0|1 or 0-1|0-1", compute: 20, passes: 3, calls: 30,
			p50: 6, best: 5, p90: 30, p99: 60, least: 3, errors: 3},
	}, merged)
}

func TestTable(t *testing.T) {
	tuned := contestant{"openmpi", "tuned"}
	var text strings.Builder
	writeTable(&text, []row{
		{contestant: goroutines, ranks: 2, p50: 0.05},
		{contestant: ours, ranks: 2, p50: 0.2},
		{contestant: tuned, ranks: 2, p50: 0.1},
		{contestant: ours, ranks: 2, bytes: 4096, p50: 30.26},
		{contestant: tuned, ranks: 2, bytes: 4096, p50: 1234},
		{contestant: ours, ranks: 8, bytes: 4096, p50: 99.96},
		{contestant: tuned, ranks: 8, bytes: 1 << 20, p50: 5},
	}, ours)
	require.Equal(t, ""+
		"| ranks |   bytes | goccl, goroutines | goccl, processes | Open MPI, tuned |\n"+
		"| ----: | ------: | ----------------: | ---------------: | --------------: |\n"+
		"|     2 | barrier |              0.05 |             0.20 |    0.10 (0.50x) |\n"+
		"|     2 |   4 KiB |                   |             30.3 |      1234 (41x) |\n"+
		"|     8 |   4 KiB |                   |            100.0 |                 |\n"+
		"|     8 |   1 MiB |                   |                  |            5.00 |\n", text.String())
}
