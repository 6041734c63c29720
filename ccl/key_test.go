package ccl_test

import (
	"errors"
	"log/slog"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/direct"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
)

// Calls of one shape in different orders mix nothing if they have keys, and calls whose keys are
// equal, in each call another one, are made, synchronous or not.
func TestKeys(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 3)
		orders := [][]string{{"w", "b"}, {"w", "b"}, {"b", "w"}}
		errs := each(3, func(r int) error {
			for i := range 20 {
				x := []int32{int32(i)}
				key := ccl.WithKey(strconv.Itoa(i / 2))
				work := started(func(async ccl.CallOption) error {
					return ccl.AllReduce(bg, g[r], x, x, ccl.Sum, key, ccl.WithLabel("of rank "+strconv.Itoa(r)), async)
				})
				if err := errors.Join(work.Wait(bg), ccl.AllReduceCoalesced(bg, g[r], [][]int32{x, {1}}, ccl.Max, key)); err != nil {
					return err
				}
				if x[0] != int32(3*i) {
					return errors.New("a wrong sum")
				}
			}
			return nil
		})
		require.NoError(t, errors.Join(errs...))
		errs = each(3, func(r int) error {
			values := map[string][]int32{"w": {7}, "b": {700}}
			for _, name := range orders[r] {
				x := values[name]
				if err := ccl.AllReduce(bg, g[r], x, x, ccl.Sum, ccl.WithKey(name)); err != nil {
					require.Equal(t, map[string][]int32{"w": {7}, "b": {700}}, values)
					return err
				}
			}
			return nil
		})
		for _, err := range errs {
			require.ErrorContains(t, err, `ranks disagree on key: "w" on ranks 0, 1; "b" on rank 2`)
		}
	})
}

// A synchronous call with a key allocates nothing, also if the call of its shape before had another
// one.
func TestKeysAllocateNothing(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		g := group(t, connect, 2)
		const runs = 200
		reduce := func(c *ccl.Communicator) func() {
			x := make([]float32, 1000)
			return func() {
				for _, key := range [...]string{"a", "b"} {
					if err := ccl.AllReduce(bg, c, x, x, ccl.Sum, ccl.WithKey(key)); err != nil {
						panic(err)
					}
				}
			}
		}
		other := async(func() error {
			f := reduce(g[1])
			for range runs + 1 + warm {
				f()
			}
			return nil
		})
		f := reduce(g[0])
		for range warm {
			f()
		}
		require.LessOrEqual(t, testing.AllocsPerRun(runs, f), 0.5) // of both ranks
		require.NoError(t, other())
	})
}

// With debug each rank warns once of a label that others do not have, and the calls are made.
func TestDebugWarnsOfLabels(t *testing.T) {
	cfg, err := config.Parse("test", []byte("version: 1\ndefaults: {debug: true}\nalgorithms: {direct: {module: direct}}\nrules: [{algorithm: direct}]\n"))
	require.NoError(t, err)
	s, err := cfg.Resolve(config.Request{Registry: ccl.Registry{"direct": direct.Algorithm}, Ranks: 3})
	require.NoError(t, err)
	everyWorld(t, func(t *testing.T, connect connector) {
		logger, written := logged(slog.LevelWarn)
		g := join(t, connect, s, logger)
		errs := each(3, func(r int) error {
			x := []int32{1}
			var errs []error
			for _, label := range []string{"loss", []string{"w", "b", "w"}[r], "loss", []string{"w", "b", "w"}[r], ""} {
				errs = append(errs, ccl.AllReduce(bg, g[r], x, x, ccl.Sum, ccl.WithLabel(label)))
			}
			return errors.Join(errs...)
		})
		require.NoError(t, errors.Join(errs...))
		lines := written.lines(t, "ranks give one call different labels; WithKey makes that an error")
		require.Len(t, lines, 3)
		for _, line := range lines {
			want := map[float64][]any{0: {"w", []any{1.0}}, 1: {"b", []any{0.0, 2.0}}, 2: {"w", []any{1.0}}}[line["rank"].(float64)]
			require.Equal(t, want, []any{line["label"], line["others"]})
			require.EqualValues(t, 2, line["call"])
			require.Equal(t, "all_reduce", line["collective"])
		}
	})
}
