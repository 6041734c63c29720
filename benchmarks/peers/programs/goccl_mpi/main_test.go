package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestArguments(t *testing.T) {
	for _, launcher := range []map[string]string{
		{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, {"PMI_RANK": "1", "PMI_SIZE": "2"},
	} {
		a, err := parseArguments(strings.Fields("mpich 0.5 20 4 1024"), func(name string) string { return launcher[name] })
		require.NoError(t, err)
		require.Equal(t, arguments{rank: 1, ranks: 2, library: "mpich", budget: 500 * time.Microsecond, maxCalls: 20, sizes: []int{4, 1024}}, a)
	}
}

func TestArgumentsThatMakeNoSense(t *testing.T) {
	for args, says := range map[string]string{
		"mpich 50":        "2 arguments, want 4 or more",
		"mpich 50 20 4":   `PMI_RANK is "", want a whole number from 0`, // no launcher
		"mpich 0 20 4":    `BUDGET_MS is "0", want a time from 0.001`,
		"mpich 50 none 4": `MAX_CALLS is "none", want a whole number from 1`,
		"mpich 50 20 4 0": `BYTES is "0", want a whole number from 4`,
	} {
		var out, errs strings.Builder
		require.Equal(t, 2, command(strings.Fields(args), func(string) string { return "" }, &out, &errs), args)
		require.Contains(t, errs.String(), says)
		require.Empty(t, out.String())
	}
}

// The result of the check is the input, and that of an all-reduce the sum.
func TestWrong(t *testing.T) {
	s := &subject{arguments: arguments{rank: 1, ranks: 2}}
	s.resize(3)
	copy(s.x, []float32{1 + 5, 1 + 6, 1 + 7})
	require.Zero(t, s.countErrors(check, 5))
	require.EqualValues(t, 3, s.countErrors(0, 5))
	copy(s.x, []float32{1 + 2*5, 1 + 2*6, 0})
	require.EqualValues(t, 1, s.countErrors(0, 5))
}
