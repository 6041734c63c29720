package ccl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// lines returns the records that have a message, decoded.
func (r *records) lines(t *testing.T, message string) (found []map[string]any) {
	for line := range strings.Lines(r.String()) {
		var record map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		if record["msg"] == message {
			found = append(found, record)
		}
	}
	return found
}

// At level info each rank logs that it has joined, and at the end what its calls of each collective have cost.
func TestLogTotals(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		logger, written := logged(slog.LevelInfo)
		g := join(t, connect, settings(t, 2, patient, nil), logger)
		errs := each(2, func(r int) error {
			for range 3 {
				if err := sum(g[r], 5); err != nil {
					return err
				}
			}
			if r == 1 {
				<-time.After(20 * time.Millisecond) // what rank 0 waits for
			}
			return errors.Join(g[r].Barrier(bg), g[r].Close(), g[r].Close())
		})
		require.NoError(t, errors.Join(errs...))
		require.Len(t, written.lines(t, "joined a group"), 2)
		require.Empty(t, written.lines(t, "chose an algorithm"))
		totals := written.lines(t, "totals")
		require.Len(t, totals, 4)
		for _, sum := range totals {
			took, waiting := sum["time"].(float64), 0.0
			_, err := fmt.Sscanf(sum["waiting"].(string), "%f%%", &waiting)
			require.NoError(t, err)
			require.Positive(t, took)
			require.True(t, waiting >= 0 && waiting <= 100, "%v", sum)
			switch sum["collective"] {
			case "all_reduce":
				require.EqualValues(t, 3, sum["calls"])
				require.EqualValues(t, 60, sum["bytes"])
			case "barrier":
				require.EqualValues(t, 1, sum["calls"])
				require.EqualValues(t, 0, sum["bytes"])
				if sum["rank"] == 0.0 {
					require.Greater(t, waiting, 50.0, "%v", sum)
				}
			default:
				require.Fail(t, "no such call was made", "%v", sum)
			}
		}
	})
}

// At level debug each choice is logged once; a failure is logged once, with its error.
func TestLogChoicesAndFailures(t *testing.T) {
	everyWorld(t, func(t *testing.T, connect connector) {
		logger, written := logged(slog.LevelDebug)
		g := join(t, connect, settings(t, 2, patient, nil), logger)
		for _, n := range []int{1, 10, 100, 10} {
			allSum(t, g, n)
		}
		require.NoError(t, errors.Join(each(2, func(r int) error { return sum(g[r], 5, ccl.WithAlgorithm("ring")) })...))
		chosen := written.lines(t, "chose an algorithm")
		require.Len(t, chosen, 4, "%v", chosen)
		require.Equal(t, "all_reduce", chosen[0]["collective"])

		ctx, cancel := context.WithCancelCause(bg)
		cancel(errors.New("enough"))
		err := ccl.AllReduce(ctx, g[0], []int{1}, []int{1}, ccl.Sum)
		require.ErrorContains(t, err, "enough")
		require.Empty(t, written.lines(t, "a call failed"), "a call that is rejected is the program's own matter")
		for range 2 {
			err = sum(g[1], 5)
			require.Error(t, err)
		}
		failures := written.lines(t, "a call failed")
		require.Len(t, failures, 1)
		require.Equal(t, "ERROR", failures[0]["level"])
		require.Contains(t, failures[0]["error"], "ccl: all_reduce of 5 float32 by direct, call 6 at ")
		require.Empty(t, written.lines(t, "totals"))
	})
}
