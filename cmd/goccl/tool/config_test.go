package tool

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

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
		"ccl.yaml:8: warning: rules 1 and 2 overlap: both match all_reduce (float32, sum, 4194304 bytes, 3 ranks), for example; rule 1 goes first\n", out)
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
bad.yaml:6:6: rules[1].size: unknown key (did you mean bytes?); known keys: algorithm, bytes, collective, dtype, nodes, op, ranks
gone.yaml: cannot read the configuration: no such file or directory
`)
	require.Equal(t, "goccl: error: 2 of 3 files cannot be used\n", errs)
	require.Equal(t, 1, status)

	t.Setenv("GOCCL_CONFIG", "bad.yaml")
	_, errs, status = configChecked(t)
	require.Equal(t, "goccl: error: the file cannot be used\n", errs)
	require.Equal(t, 1, status)
}

const oneRule = "version: 1\nalgorithms: {direct: {module: direct}}\nrules: [{algorithm: direct}]\n"

// Files are named by arguments, by --config as in other commands, or come from the standard input.
func TestConfigCheckOfNamedFiles(t *testing.T) {
	alone(t)
	writeFile(t, "a.yaml", oneRule)
	writeFile(t, "b.yaml", "version: 2\n")
	out, _, status := configChecked(t, "--config", "a.yaml")
	require.Equal(t, "a.yaml: ok\n", out)
	require.Zero(t, status)
	out, errs, status := configChecked(t, "b.yaml", "--config=a.yaml,gone.yaml")
	require.Regexp(t, `^a.yaml: ok\ngone.yaml: cannot read .*\nb.yaml:1:10: version: `, out)
	require.Equal(t, "goccl: error: 2 of 3 files cannot be used\n", errs)
	require.Equal(t, 1, status)

	var checked bytes.Buffer
	require.NoError(t, (&checkCommand{Files: []string{"-"}}).check(strings.NewReader(oneRule), &checked))
	require.Equal(t, "standard input: ok\n", checked.String())
	checked.Reset()
	require.Error(t, (&checkCommand{Files: []string{"a.yaml", "-"}}).check(strings.NewReader("version: 2\n"), &checked))
	require.Regexp(t, `^a.yaml: ok\nstandard input:1:10: version: `, checked.String())
	checked.Reset()
	require.Error(t, (&checkCommand{Files: []string{"-"}}).check(iotest.ErrReader(errors.New("it is torn")), &checked))
	require.Equal(t, "standard input: cannot read the configuration: it is torn\n", checked.String())
}

// Mistakes in the command line say what to write, such as a file where a command takes none.
func TestMistakesSayWhatToWrite(t *testing.T) {
	alone(t)
	writeFile(t, "a.yaml", oneRule)
	writeFile(t, "b,c.yaml", oneRule)
	for _, c := range []struct{ args, want string }{
		{"explain a.yaml", "unexpected argument a.yaml: name one configuration file by its flag, as in goccl explain --config a.yaml\n"},
		{"explain a.yaml b.yaml", "as in goccl explain --config a.yaml\n"},
		{"explain a.yaml,b.yaml", "as in goccl explain --config a.yaml\n"},
		{"explain --config a.yaml --config b.yaml", "--config names several files, and this command shows one: goccl config check checks several"},
		{"config a.yaml", "unexpected argument a.yaml: did you mean goccl config check a.yaml?\n"},
		{"config chekc", "unexpected argument chekc, did you mean \"check\"?\n"},
		{"inspect a b", "unexpected argument b; goccl inspect --help shows what it takes\n"},
		{"config check --nosuch", "unknown flag --nosuch; goccl config check --help shows what it takes\n"},
		{"explain allreduce", "unexpected argument allreduce; goccl explain --help shows what it takes\n"},
		{"nosuch", "unexpected argument nosuch; commands: bench, config, doctor, explain, help, inspect, run\n"},
		{"run --max_restart 3 -n 2 true", "unknown flag --max_restart, did you mean \"--max-restarts\"?\n"},
		{"run --max-restart 3 -n 2 true", "unknown flag --max-restart, did you mean \"--max-restarts\"?\n"},
		{"run --noderank 1 -n 2 true", "unknown flag --noderank, did you mean \"--node-rank\"?\n"},
		{"rnu", "unexpected argument rnu, did you mean \"run\"?\n"},
		{"-n 2 a.yaml", "unknown flag -n; commands: bench, "},
		{"./a.yaml", "unexpected argument ./a.yaml: did you mean goccl run -n 4 ./a.yaml? commands: bench, "},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, run(context.Background(), strings.Fields(c.args), &out, &errs), c.args)
		require.Contains(t, errs.String(), c.want)
	}
	var out, errs bytes.Buffer
	require.Zero(t, run(context.Background(), []string{"explain", "--config", "b,c.yaml", "--ranks", "2"}, &out, &errs), errs.String())
	require.Contains(t, out.String(), "configuration: b,c.yaml (--config)")
}
