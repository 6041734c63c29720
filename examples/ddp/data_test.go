package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/examples/digits"
)

// The training and the test set are disjoint and together the whole; only the seed decides
// which row is in which.
func TestSplit(t *testing.T) {
	rows := strings.Builder{}
	for i := range 100 { // every row differs in pixels 0 and 1
		fmt.Fprintf(&rows, "%d,%d%s,%d\n", i/10, i%10, strings.Repeat(",0", pixels-2), i%classes)
	}
	images, labels, err := digits.Parse[float64](strings.NewReader(rows.String()))
	require.NoError(t, err)
	d := &dataset[float64]{images, labels}

	train, test := d.split(5)
	require.Equal(t, 80, train.len())
	require.Equal(t, 20, test.len())
	seen := map[[2]float64]bool{}
	for _, part := range []*dataset[float64]{train, test} {
		for i, label := range part.labels {
			tens, ones := part.images[i*pixels]*digits.MaxInk, part.images[i*pixels+1]*digits.MaxInk
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
