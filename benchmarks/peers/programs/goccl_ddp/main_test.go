package main

import (
	"context"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Both forms are measured on any number of ranks, and all means are right.
func TestSteps(t *testing.T) {
	for _, args := range []string{"1 views", "2 views", "3 views", "2 copies", "3 copies"} {
		var out, errs strings.Builder
		require.Zero(t, command(t.Context(), strings.Fields(args+" mine x 0.5 20 tiny 3 10 5000"), &out, &errs), errs.String())
		records, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		require.NoError(t, err)
		require.Len(t, records, 2)
		field := map[string]string{}
		for i, name := range records[0] {
			field[name] = records[1][i]
		}

		require.Equal(t, "mine ddp_tiny x avg "+args[:1]+" 20052 0",
			strings.Join([]string{field["library"], field["collective"], field["entry"], field["op"], field["ranks"], field["bytes"], field["errors"]}, " "))
	}
}

// Elements that differ from the mean are counted.
func TestWrongElementsAreCounted(t *testing.T) {
	s := &steps{ranks: 3, gradients: [][]float32{{1, 2, 3}, {2, 3, 4}}}
	require.Zero(t, s.countErrors(0))
	s.gradients[1][2]++
	require.EqualValues(t, 1, s.countErrors(0))
	require.EqualValues(t, 5, s.countErrors(1))
}

func TestArgumentsThatMakeNoSense(t *testing.T) {
	for args, says := range map[string]string{
		"":                            "0 arguments, want 8 or more",
		"two views mine x 100 5 a 4":  `RANKS is "two", want a whole number from 1`,
		"2 alloc mine x 100 5 a 4":    `FORM is "alloc", want views or copies`,
		"2 views mine x 0 5 a 4":      `BUDGET_MS is "0", want a time from 0.001`,
		"2 views mine x 100 0 a 4":    `MAX_STEPS is "0"`,
		"2 views mine x 100 5 a 4 4K": `ELEMENTS is "4K"`,
	} {
		var out, errs strings.Builder
		require.Equal(t, 2, command(t.Context(), strings.Fields(args), &out, &errs), args)
		require.Contains(t, errs.String(), says)
		require.Contains(t, errs.String(), "usage: goccl_ddp RANKS ")
	}
}

func TestEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	require.Equal(t, 1, command(ctx, strings.Fields("2 views mine x 1 5 a 4"), &out, &errs))
	require.Contains(t, errs.String(), context.Canceled.Error())
}
