package dist_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/dist"
)

// standardError returns what f writes to standard error.
func standardError(t *testing.T, f func()) string {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	was := os.Stderr
	os.Stderr = write
	written := make(chan []byte)
	go func() {
		text, _ := io.ReadAll(read)
		written <- text
	}()
	f()
	os.Stderr = was
	require.NoError(t, write.Close())
	return string(<-written)
}

// GOCCL_LOG logs to standard error from its level on. Without it, and with a logger of the program, nothing is
// written there.
func TestLogVariable(t *testing.T) {
	life := func(opts ...dist.InitOption) func() {
		return func() {
			require.NoError(t, spawn(t, initialised(func(context.Context, int) error {
				return dist.AllReduce([]float32{1}, dist.Sum)
			}, opts...), dist.WithRanks(2)))
		}
	}
	for level, want := range map[string][]string{
		"":      nil,
		"warn":  nil,
		"info":  {"level=INFO msg=\"joined a group\" rank=1 ranks=2 transport=local", "msg=totals rank=0 collective=all_reduce calls=1 bytes=4 time="},
		"debug": {"level=DEBUG msg=\"chose an algorithm\" rank=1 collective=all_reduce algorithm=direct", "msg=totals"},
	} {
		t.Setenv("GOCCL_LOG", level)
		text := standardError(t, life())
		if want == nil {
			require.Empty(t, text, level)
		}
		for _, line := range want {
			require.Contains(t, text, line, level)
		}
	}
	var own bytes.Buffer
	require.Empty(t, standardError(t, life(dist.WithLogger(slog.New(slog.NewTextHandler(&own, nil))))), "the program's logger overrides the variable")
	require.Contains(t, own.String(), "joined a group")
}

// At level warn a failure is logged with the line of the call.
func TestLogVariableShowsFailures(t *testing.T) {
	t.Setenv("GOCCL_LOG", "warn")
	text := standardError(t, func() {
		require.Error(t, spawn(t, joined(func(_ context.Context, rank int) error {
			if rank == 1 {
				return nil
			}
			return dist.Barrier(dist.WithLabel("epoch 3"))
		}), dist.WithRanks(2)))
	})
	require.Regexp(t, `level=ERROR msg="a call failed" rank=0 error="ccl: barrier \\"epoch 3\\".* at dist/log_test.go:\d+: peer lost: rank 1 has left the group"`, text)
}

// A wrong value of GOCCL_LOG is an error of InitProcessGroup on all ranks.
func TestWrongLogVariable(t *testing.T) {
	t.Setenv("GOCCL_LOG", "loud")
	err := spawn(t, func(context.Context, int) error { return dist.InitProcessGroup("ccl") }, dist.WithRanks(2))
	require.ErrorContains(t, err, `environment: GOCCL_LOG: "loud" is none of warn, info and debug`)
	var wrong *dist.ConfigError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "GOCCL_LOG", wrong.Key)
}
