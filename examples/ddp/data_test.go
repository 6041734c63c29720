package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDigits(t *testing.T) {
	d, err := loadDigits[float32]()
	require.NoError(t, err)
	require.Equal(t, 1797, d.len())
	require.Len(t, d.images, 1797*pixels)
	require.Zero(t, slices.Min(d.images))
	require.EqualValues(t, 1, slices.Max(d.images))

	perClass := make([]int, classes)
	for _, label := range d.labels {
		perClass[label]++
	}
	require.Equal(t, []int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}, perClass)
}

// The training and the test set are disjoint and together the whole; only the seed decides
// which row is in which.
func TestSplit(t *testing.T) {
	rows := strings.Builder{}
	for i := range 100 { // every row differs in pixels 0 and 1
		fmt.Fprintf(&rows, "%d,%d%s,%d\n", i/10, i%10, strings.Repeat(",0", pixels-2), i%classes)
	}
	d, err := parseDigits[float64](strings.NewReader(rows.String()))
	require.NoError(t, err)

	train, test := d.split(5)
	require.Equal(t, 80, train.len())
	require.Equal(t, 20, test.len())
	seen := map[[2]float64]bool{}
	for _, part := range []*dataset[float64]{train, test} {
		for i, label := range part.labels {
			tens, ones := part.images[i*pixels]*maxInk, part.images[i*pixels+1]*maxInk
			require.EqualValues(t, ones, label, "the label travels with its image")
			seen[[2]float64{tens, ones}] = true
		}
	}
	require.Len(t, seen, 100)

	again, _ := d.split(5)
	require.Equal(t, train, again)
	other, _ := d.split(6)
	require.NotEqual(t, train, other)
}

func TestParseDigitsRefuses(t *testing.T) {
	good := strings.Repeat("0,", pixels) + "7\n"
	for name, c := range map[string]struct{ rows, want string }{
		"nothing":        {"", "no rows"},
		"too few fields": {good + "1,2,3\n", "line 2 has 3 fields"},
		"too many":       {good + "0," + good, "line 2 has 66 fields"},
		"empty line":     {good + "\n" + good, "line 2 has 1 fields"},
		"too black":      {good + "17" + good[1:], `line 2, pixel 0 is "17"`},
		"negative":       {"-1" + good[1:], `line 1, pixel 0 is "-1"`},
		"not a number":   {strings.Repeat("0,", pixels-1) + "x,7\n", `line 1, pixel 63 is "x"`},
		"no such class":  {strings.Repeat("0,", pixels) + "10\n", `line 1, label is "10"`},
		"endless line":   {good + strings.Repeat("0", 1<<17), "after line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseDigits[float32](strings.NewReader(c.rows))
			require.ErrorContains(t, err, c.want)
		})
	}
}
