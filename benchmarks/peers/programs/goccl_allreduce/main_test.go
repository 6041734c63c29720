package main

import (
	"context"
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

// asProgram is the variable that makes the test binary the program itself.
const asProgram = "TEST_GOCCL_ALLREDUCE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// requireRows parses a table and checks every row.
func requireRows(t *testing.T, text, entry string, ranks int, sizes ...int) {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 1+len(sizes))
	for i, record := range records[1:] {
		field := map[string]string{}
		for j, name := range records[0] {
			field[name] = record[j]
		}
		number := func(name string) float64 {
			x, err := strconv.ParseFloat(field[name], 64)
			require.NoError(t, err, name)
			return x
		}
		require.Equal(t, "mine", field["library"])
		require.Equal(t, entry, field["entry"])
		require.EqualValues(t, ranks, number("ranks"))
		require.EqualValues(t, sizes[i], number("bytes"))
		require.Zero(t, number("errors"))
		require.GreaterOrEqual(t, number("calls"), float64(minCalls))
		require.LessOrEqual(t, number("calls"), 50.0)
		require.Positive(t, number("min_us"))
		require.LessOrEqual(t, number("min_us"), number("p50_us"))
		require.LessOrEqual(t, number("p50_us"), number("p99_us"))
		if sizes[i] == 0 {
			require.Equal(t, "barrier", field["collective"])
			continue
		}
		require.Equal(t, "all_reduce", field["collective"])
		algbw := float64(sizes[i]) / number("p50_us") / 1e3
		require.InDelta(t, algbw, number("algbw_gbs"), 1e-3*algbw+1e-4)
		busbw := algbw * 2 * float64(ranks-1) / float64(ranks)
		require.InDelta(t, busbw, number("busbw_gbs"), 1e-3*busbw+1e-4)
	}
}

func TestGoroutines(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 8} {
		var out, errs strings.Builder
		args := []string{strconv.Itoa(ranks), "mine", "goroutines", "0.5", "50", "0", "4", "4096", "20004"}
		require.Zero(t, command(t.Context(), args, &out, &errs), errs.String())
		require.Empty(t, errs.String())
		requireRows(t, out.String(), "goroutines", ranks, 0, 4, 4096, 20004)
	}
}

// Elements that differ from the sum are counted.
func TestWrongElementsAreCounted(t *testing.T) {
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(config.Default())); err != nil {
			return err
		}
		v := vector{make([]float32, 20), rank, 3}
		if _, err := v.round(5); err != nil {
			return err
		}
		if n := v.wrong(5); n != 0 {
			t.Errorf("rank %d: %d elements are wrong", rank, n)
		}
		v.x[3] += 100
		v.x[17] -= 100
		if n := v.wrong(5); n != 2 {
			t.Errorf("rank %d: %d elements are wrong, want 2", rank, n)
		}
		if n := v.wrong(6); n != 20 {
			t.Errorf("rank %d: %d elements are wrong in another round, want 20", rank, n)
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(3))
	require.NoError(t, err)
}

func TestArgumentsThatMakeNoSense(t *testing.T) {
	for args, says := range map[string]string{
		"":                        "0 arguments, want 6 or more",
		"2 mine x 100 50":         "5 arguments, want 6 or more",
		"two mine x 100 50 4":     `RANKS is "two", want a whole number from 1`,
		"0 mine x 100 50 4":       `RANKS is "0"`,
		"2 mine x 0 50 4":         `BUDGET_MS is "0", want a time above 0`,
		"2 mine x NaN 50 4":       `BUDGET_MS is "NaN"`,
		"2 mine x 100 many 4":     `MAX_CALLS is "many", want a whole number from 1`,
		"2 mine x 100 50 4 4KiB":  `BYTES is "4KiB", want a whole number from 0`,
		"2 mine x 100 50 4 -4 16": `BYTES is "-4"`,
	} {
		var out, errs strings.Builder
		require.Equal(t, 2, command(t.Context(), strings.Fields(args), &out, &errs), args)
		require.Contains(t, errs.String(), says)
		require.Contains(t, errs.String(), "usage: goccl_allreduce RANKS ")
		require.Empty(t, out.String())
	}
}

func TestEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	require.Equal(t, 1, command(ctx, strings.Fields("2 mine goroutines 1 50 4"), &out, &errs))
	require.Contains(t, errs.String(), context.Canceled.Error())
}
