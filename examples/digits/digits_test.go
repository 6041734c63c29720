package digits

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoad(t *testing.T) {
	all, err := Load[float32]()
	require.NoError(t, err)
	require.Len(t, all.Labels, 1797)
	require.Len(t, all.Images, 1797*Pixels)
	require.Zero(t, slices.Min(all.Images))
	require.EqualValues(t, 1, slices.Max(all.Images))
	perClass := make([]int, Classes)
	for _, label := range all.Labels {
		perClass[label]++
	}
	require.Equal(t, []int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}, perClass)
}

func TestParseRefuses(t *testing.T) {
	good := strings.Repeat("0,", Pixels) + "7\n"
	for name, c := range map[string]struct{ rows, want string }{
		"nothing":        {"", "no rows"},
		"too few fields": {good + "1,2,3\n", "line 2 has 3 fields"},
		"too many":       {good + "0," + good, "line 2 has 66 fields"},
		"empty line":     {good + "\n" + good, "line 2 has 1 fields"},
		"too black":      {good + "17" + good[1:], `line 2, pixel 0 is "17"`},
		"negative":       {"-1" + good[1:], `line 1, pixel 0 is "-1"`},
		"not a number":   {strings.Repeat("0,", Pixels-1) + "x,7\n", `line 1, pixel 63 is "x"`},
		"no such class":  {strings.Repeat("0,", Pixels) + "10\n", `line 1, label is "10"`},
		"endless line":   {good + strings.Repeat("0", 1<<17), "after line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse[float32](strings.NewReader(c.rows))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// The training and the test set are disjoint and together the whole; only the seed decides
// which row is in which.
func TestSplit(t *testing.T) {
	rows := strings.Builder{}
	for i := range 100 { // every row differs in pixels 0 and 1
		fmt.Fprintf(&rows, "%d,%d%s,%d\n", i/10, i%10, strings.Repeat(",0", Pixels-2), i%Classes)
	}
	all, err := parse[float64](strings.NewReader(rows.String()))
	require.NoError(t, err)

	train, test := all.split(5)
	require.Equal(t, 80, train.Len())
	require.Equal(t, 20, test.Len())
	seen := map[[2]float64]bool{}
	for _, part := range []Set[float64]{train, test} {
		for i, label := range part.Labels {
			tens, ones := part.Images[i*Pixels]*MaxInk, part.Images[i*Pixels+1]*MaxInk
			require.EqualValues(t, ones, label, "the label travels with its image")
			seen[[2]float64{tens, ones}] = true
		}
	}
	require.Len(t, seen, 100)
	require.Equal(t, Set[float64]{all.Images[2*Pixels : 4*Pixels], all.Labels[2:4]}, all.Slice(2, 4))

	again, _ := all.split(5)
	require.Equal(t, train, again)
	other, _ := all.split(6)
	require.NotEqual(t, train, other)
}

func TestSets(t *testing.T) {
	train, test, err := Sets[float32](1)
	require.NoError(t, err)
	require.Equal(t, 1437, train.Len())
	require.Equal(t, 360, test.Len())
}
