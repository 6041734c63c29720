package tool

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const flightDocument = `{"version": 1, "job": "train", "size": 2, "writer": "goccl run", "ranks": [
 {"rank": 0, "groups": [{"id": "0", "rank": 0, "size": 2, "calls": [{"number": 1, "collective": "barrier", "state": "failed"}]}]},
 {"rank": 1, "groups": [{"id": "0", "rank": 1, "size": 2, "calls": []}]}]}`

// goccl inspect shows a directory of flight records and draws it.
func TestInspect(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "flight-train-goccl-run.json"), []byte(flightDocument), 0o600))
	svg, trace := filepath.Join(dir, "a.svg"), filepath.Join(dir, "a.json")
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"inspect", dir, "--svg", svg, "--trace", trace}, &out, &errs), errs.String())
	require.Equal(t, `job train, 2 ranks; records from goccl run

all ranks
  rank 0: call 1, barrier (failed)
  rank 1: no call
  the first difference: call 1
    rank 0: barrier
    rank 1: did not come
`, out.String())
	require.FileExists(t, svg)
	require.FileExists(t, trace)
}

func TestInspectRefuses(t *testing.T) {
	var out, errs bytes.Buffer
	require.NotZero(t, run(t.Context(), []string{"inspect", t.TempDir()}, &out, &errs))
	require.Contains(t, errs.String(), "no flight records")
	errs.Reset()
	require.NotZero(t, run(t.Context(), []string{"inspect", "no-such-job-" + time.Now().Format("150405")}, &out, &errs))
	require.Contains(t, errs.String(), "goccl: error: ")
	errs.Reset()
	require.NotZero(t, run(t.Context(), []string{"inspect", "--svg", "x"}, &out, &errs))
	require.Contains(t, errs.String(), "name a directory")
}
