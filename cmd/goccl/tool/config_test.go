package tool

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// configChecked returns the output of `goccl config check` and its exit status.
func configChecked(t *testing.T, files ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(context.Background(), append([]string{"config", "check"}, files...), &out, &errs)
	return out.String(), errs.String(), status
}

func TestConfigCheck(t *testing.T) {
	alone(t)
	out, _, status := configChecked(t)
	require.Equal(t, "built-in ccl.yaml: ok\n", out)
	require.Zero(t, status)

	writeFile(t, "ccl.yaml", threeRules)
	out, _, status = configChecked(t)
	require.Equal(t, "ccl.yaml: ok\n"+
		"ccl.yaml:8: warning: rules 1 and 2 overlap: both match all_reduce of float32 of 4MiB-8MiB bytes on 3- ranks; rule 1 goes first\n", out)
	require.Zero(t, status, "warnings are not mistakes")

	writeFile(t, "bad.yaml", `version: 1
defaults: {timeout: 60}
algorithms:
  ring: {module: ring, params: {chunks: 64KiB}}
rules:
  - {size: 1MiB, algorithm: ring}
`)
	out, errs, status := configChecked(t, "ccl.yaml", "bad.yaml", "gone.yaml")
	require.Contains(t, out, `ccl.yaml: ok
ccl.yaml:8: warning: `)
	require.Contains(t, out, `
bad.yaml has 3 mistakes:
bad.yaml:2:21: defaults.timeout: want a duration with its unit, such as 500ms, 60s or 5m, or none; got the number 60
bad.yaml:4:33: algorithms.ring.params.chunks: unknown key (did you mean chunk?); known keys: chunk
bad.yaml:6:6: rules[1].size: unknown key (did you mean bytes?); known keys: algorithm, bytes, collective, dtype, op, ranks
gone.yaml: cannot read the configuration: no such file or directory
`)
	require.Equal(t, "goccl: error: 2 of 3 files cannot be used\n", errs)
	require.Equal(t, 1, status)

	t.Setenv("GOCCL_CONFIG", "bad.yaml")
	_, errs, status = configChecked(t)
	require.Equal(t, "goccl: error: the file cannot be used\n", errs)
	require.Equal(t, 1, status)
}
