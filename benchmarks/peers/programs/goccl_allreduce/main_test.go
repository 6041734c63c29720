package main

import (
	"context"
	"encoding/csv"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/benchmarks/peers/programs/internal/program"
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
		require.GreaterOrEqual(t, number("calls"), float64(program.MinRounds))

		require.LessOrEqual(t, number("calls"), 50.0)
		require.Positive(t, number("min_us"))
		require.LessOrEqual(t, number("min_us"), number("p50_us"))
		require.Equal(t, number("p50_us"), number("best_us"))
		require.LessOrEqual(t, number("p50_us"), number("p90_us"))
		require.LessOrEqual(t, number("p90_us"), number("p99_us"))
		require.EqualValues(t, 1, number("passes"))
		require.Regexp(t, coresOf(ranks), field["cores"])
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
		args := []string{strconv.Itoa(ranks), "private", "mine", "goroutines", "0.5", "50", "0", "0", "4", "4096", "20004"}
		require.Zero(t, command(t.Context(), args, &out, &errs), errs.String())
		require.Empty(t, errs.String())
		requireRows(t, out.String(), "goroutines", ranks, 0, 4, 4096, 20004)
	}
}

// coresOf matches the cores of so many ranks; other systems than Linux do not show them.
func coresOf(ranks int) string {
	if runtime.GOOS != "linux" {
		return "^$"
	}
	return `^[0-9,-]+` + strings.Repeat(`\|[0-9,-]+`, ranks-1) + "$"
}

// A rank that computes makes the steps of its share: in every round others, and others than the
// next rank.
func TestComputes(t *testing.T) {
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(config.Default())); err != nil {
			return err
		}
		v := vector{rank: rank, ranks: 2, steps: 100, state: 1}
		if _, err := v.round(7); err != nil {
			return err
		}

		if want := compute(1, int64(100*jitter(rank, 7))); v.state != want {
			t.Errorf("rank %d: the state is %d, want %d", rank, v.state, want)
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(2))
	require.NoError(t, err)
	require.EqualValues(t, 1082269761, compute(1, 1)) // Marsaglia's example of xorshift
	require.NotEqual(t, compute(1, 3), compute(1, 4))
}

// The factors of ranks and rounds fill the range from 0.9 to 1.1.
func TestJitter(t *testing.T) {
	const rounds = 1000
	var all []float64
	for rank := range 4 {
		for round := range rounds {
			all = append(all, jitter(rank, round))
		}
	}

	for tenth := range 10 {
		low := 0.9 + 0.02*float64(tenth)
		n := 0
		for _, factor := range all {
			if factor >= low && factor < low+0.02 {
				n++
			}
		}
		require.InDelta(t, len(all)/10, n, float64(len(all))/40, "from %v", low)
	}

	require.Equal(t, 0.9383944946806878, all[0], "as in C and in Python")
	require.Equal(t, 0.9961525244172663, jitter(1, 1000), "as in C and in Python")
	require.NotEqual(t, all[0], all[1])
	require.NotEqual(t, all[0], all[rounds])
}

// Ranks that compute, and vectors from Alloc.
func TestAllocAndCompute(t *testing.T) {
	var out, errs strings.Builder
	args := strings.Fields("3 alloc mine alloc 0.5 50 20 0 4 4096 20004")
	require.Zero(t, command(t.Context(), args, &out, &errs), errs.String())
	requireRows(t, out.String(), "alloc", 3, 0, 4, 4096, 20004)
	require.Contains(t, out.String(), `,20,1,`, "the microseconds of compute")
	out.Reset()
	require.Zero(t, command(t.Context(), strings.Fields("2 alloc mine alloc 0.5 50 0 0"), &out, &errs), "only a barrier")
	requireRows(t, out.String(), "alloc", 2, 0)
}

// Elements that differ from the sum are counted.
func TestWrongElementsAreCounted(t *testing.T) {
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(config.Default())); err != nil {
			return err
		}
		v := vector{x: make([]float32, 20), rank: rank, ranks: 3}
		if _, err := v.round(5); err != nil {
			return err
		}

		if n := v.countErrors(5); n != 0 {
			t.Errorf("rank %d: %d elements are wrong", rank, n)
		}
		v.x[3] += 100
		v.x[17] -= 100
		if n := v.countErrors(5); n != 2 {
			t.Errorf("rank %d: %d elements are wrong, want 2", rank, n)
		}

		if n := v.countErrors(6); n != 20 {
			t.Errorf("rank %d: %d elements are wrong in another round, want 20", rank, n)
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(3))
	require.NoError(t, err)
}

func TestArgumentsThatMakeNoSense(t *testing.T) {
	for args, says := range map[string]string{
		"":                                  "0 arguments, want 8 or more",
		"2 private mine x 100 50 0":         "7 arguments, want 8 or more",
		"two private mine x 100 50 0 4":     `RANKS is "two", want a whole number from 1`,
		"0 private mine x 100 50 0 4":       `RANKS is "0"`,
		"2 public mine x 100 50 0 4":        `MEMORY is "public", want private or alloc`,
		"2 private mine x 0 50 0 4":         `BUDGET_MS is "0", want a time from 0.001`,
		"2 private mine x NaN 50 0 4":       `BUDGET_MS is "NaN"`,
		"2 private mine x 100 many 0 4":     `MAX_CALLS is "many", want a whole number from 1`,
		"2 private mine x 100 50 -1 4":      `COMPUTE_US is "-1", want a time from 0`,
		"2 private mine x 100 50 0 4 4KiB":  `BYTES is "4KiB", want a whole number from 0`,
		"2 private mine x 100 50 0 4 -4 16": `BYTES is "-4"`,
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
	require.Equal(t, 1, command(ctx, strings.Fields("2 private mine goroutines 1 50 0 4"), &out, &errs))
	require.Contains(t, errs.String(), context.Canceled.Error())
}
