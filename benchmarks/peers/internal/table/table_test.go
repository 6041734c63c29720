package table_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/benchmarks/peers/internal/table"
)

func TestRowsAreReadAsWritten(t *testing.T) {
	rows := []table.Row{
		{Contestant: table.Contestant{Library: "mpich", Entry: "tuned"}, Ranks: 4, Bytes: 1 << 20, Cores: "0,2|1|3|3", ComputeUS: 250,
			Passes: 9, Calls: 100, P50US: 250, BestUS: 240, P90US: 300, P99US: 400.5, LeastUS: 200.125, Errors: 2},
		{Contestant: table.Contestant{Library: "goccl", Entry: "processes"}, Ranks: 2, Passes: 1, Calls: 20000, P50US: 0.25, BestUS: 0.2, P90US: 0.3, P99US: 0.5, LeastUS: 0.125},
	}
	var text strings.Builder
	require.NoError(t, table.Write(&text, rows))
	require.Equal(t, table.Columns+"\n"+
		"mpich,all_reduce,tuned,float32,sum,4,1048576,true,false,\"0,2|1|3|3\",250,9,100,250.000,240.000,300.000,400.500,200.125,4.1943,6.2915,,,2\n"+
		"goccl,barrier,processes,,,2,0,,false,,0,1,20000,0.250,0.200,0.300,0.500,0.125,,,,,0\n", text.String())
	again, err := table.Parse(text.String())
	require.NoError(t, err)
	require.Equal(t, rows, again)
}

func TestRowsThatMakeNoSense(t *testing.T) {
	const good = "x,all_reduce,y,float32,sum,2,4,true,false,,0,1,5,1,1,2,2,1,,,,,0\n"
	_, err := table.Parse(table.Columns + "\n" + good)
	require.NoError(t, err)
	for text, says := range map[string]string{
		"":      "the first line is not",
		good:    "the first line is not",
		"hello": "the first line is not",
		table.Columns + "\n" + good + "x,all_reduce\n":                           "wrong number of fields",
		table.Columns + "\n" + strings.Replace(good, ",2,4,", ",two,4,", 1):      "line 2: no sense in ranks: x,all_reduce",
		table.Columns + "\n" + strings.Replace(good, ",2,4,", ",2,-4,", 1):       "no sense in bytes",
		table.Columns + "\n" + strings.Replace(good, ",5,1,", ",5,NaN,", 1):      "no sense in p50_us",
		table.Columns + "\n" + strings.Replace(good, ",5,1,", ",,-1,", 1):        "no sense in calls, p50_us",
		table.Columns + "\n" + strings.Replace(good, "all_reduce", "barrier", 1): "no sense in collective",
	} {
		_, err := table.Parse(text)
		require.ErrorContains(t, err, says, text)
	}
}

// A row has the quantiles of its calls.
func TestMeasured(t *testing.T) {
	times := []time.Duration{3000, 1000, 2000, 5000, 4000}
	require.Equal(t, table.Row{Contestant: table.Contestant{Library: "a", Entry: "b"}, Ranks: 2, Bytes: 8, Cores: "0|1", Passes: 1, Calls: 5,
		P50US: 3, BestUS: 3, P90US: 5, P99US: 5, LeastUS: 1}, table.Measured(table.Contestant{Library: "a", Entry: "b"}, 2, 8, "0|1", times))
}
