package launchenv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	strong  = "0123456789abcdef"
	several = "MASTER_ADDR" // tells nodes apart
)

func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for want, v := range map[string]variables{
		strong:       {"GOCCL_SECRET": strong},
		strong + "2": {"GOCCL_SECRET_FILE": write("good", "\n"+strong+"2\n")},
	} {
		got, err := ReadSecret(func(name string) string { return v[name] })
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, v := range []variables{{}, {"GOCCL_SECRET": "none"}} {
		got, err := ReadSecret(func(name string) string { return v[name] })
		require.NoError(t, err)
		require.Empty(t, got)
	}

	for text, v := range map[string]variables{
		"GOCCL_SECRET and GOCCL_SECRET_FILE are set: unset one of them":                     {"GOCCL_SECRET": strong, "GOCCL_SECRET_FILE": "x"},
		"the secret of GOCCL_SECRET_FILE: open " + dir + "/none: no such file or directory": {"GOCCL_SECRET_FILE": dir + "/none"},
		"the secret of GOCCL_SECRET has 5 bytes, and could be found by trying: it needs 16": {"GOCCL_SECRET": "short"},
		"/empty has 0 bytes": {"GOCCL_SECRET_FILE": write("empty", " \n")},
	} {
		_, err := ReadSecret(func(name string) string { return v[name] })
		require.ErrorContains(t, err, text)
		require.ErrorAs(t, err, new(*Error))
		require.NotContains(t, err.Error(), "short")
	}
}

func TestSecretOfAllLaunchers(t *testing.T) {
	for name, v := range map[string]variables{"torchrun": torchrun, "env://": env, "goccl run": run, "Open MPI": openMPI} {
		j, err := detectIn(v.with(variables{"GOCCL_SECRET": strong}), "")
		require.NoError(t, err, name)
		require.Equal(t, strong, j.Secret, name)
	}
	j, err := detectIn(run.with(variables{"GOCCL_SECRET": strong, "GOCCL_SHM_SECRET": "its own"}), "")
	require.NoError(t, err)
	require.Equal(t, "its own", j.Secret)
	_, err = detectIn(run.with(variables{"GOCCL_SHM_SECRET": "its own", "GOCCL_NODES": "2"}), "")
	require.ErrorContains(t, err, "the secret of GOCCL_SHM_SECRET has 7 bytes, and could be found by trying")
	_, err = detectIn(torchrun.with(variables{"GOCCL_SECRET": "short"}), "")
	require.ErrorContains(t, err, "could be found by trying")
}

// TestNodesByHand has the ranks of env:// that may be on several nodes: all of them find the same.
func TestNodesByHand(t *testing.T) {
	for _, v := range []variables{{"GOCCL_SECRET": strong}, {"GOCCL_SECRET": "none"}} {
		there := env.with(v, variables{several: "node-a"})
		j, err := detect(environment{get: func(name string) string { return there[name] }, namespace: func(string) string { return "" },
			local: func(string) error { return nil }}) // on the node of rank 0
		require.NoError(t, err)
		require.Equal(t, "with a secret, and without LOCAL_WORLD_SIZE, they may be on several nodes", j.Apart)
	}
	j, err := detectIn(env.with(variables{"GOCCL_SECRET": strong, "LOCAL_WORLD_SIZE": "4"}), "")
	require.NoError(t, err)
	require.Empty(t, j.Apart)
	j, err = detectIn(env.with(variables{"GOCCL_SECRET": strong}), "")
	require.NoError(t, err)
	require.Empty(t, j.Apart, "localhost is this node")
}

func TestNodesOfGocclRun(t *testing.T) {
	j, err := detectIn(run.with(variables{"GOCCL_NODES": "2"}), "")
	require.NoError(t, err)
	require.Equal(t, "by GOCCL_NODES=2 they are on 2 nodes", j.Apart)
	require.Equal(t, "goccl-0123456789abcdef", j.Key, "the launchers agree on it")
	j, err = detectIn(run.with(variables{"GOCCL_NODES": "1"}), "")
	require.NoError(t, err)
	require.Empty(t, j.Apart)
	_, err = detectIn(run.with(variables{"GOCCL_NODES": "two"}), "")
	require.ErrorContains(t, err, "GOCCL_NODES=two")
}

func TestAddress(t *testing.T) {
	dir := t.TempDir()
	get := func(name string) string {
		return map[string]string{ResultVariable: filepath.Join(dir, "result-3")}[name]
	}
	at, err := ReadAddress(get, 2)
	require.NoError(t, err)
	require.Empty(t, at)
	require.NoError(t, SendAddress(get, 2, "127.0.0.1:4711"))
	at, err = ReadAddress(get, 2)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:4711", at)
	at, err = ReadAddress(get, 3)
	require.NoError(t, err)
	require.Empty(t, at, "another attempt has another file")
}
