package launchenv

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a rank tells is read back whole, whichever part it tells first; a launcher that names no file gets nothing.
func TestResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result")
	getenv := func(name string) string { return map[string]string{ResultVariable: path}[name] }
	r, err := ReadResult(path)
	require.NoError(t, err)
	require.Nil(t, r)

	require.NoError(t, SendTransport(func(string) string { return "" }, "shm"))
	require.NoFileExists(t, path)

	require.NoError(t, SendValue(getenv, json.RawMessage(`{"loss":0.5}`)))
	require.NoError(t, SendTransport(getenv, "local"))
	require.NoError(t, SendTransport(getenv, "shm"))
	r, err = ReadResult(path)
	require.NoError(t, err)
	require.Equal(t, &Result{Version: 1, PID: os.Getpid(), Transport: "shm", Value: json.RawMessage(`{"loss":0.5}`)}, r)
	for want, send := range map[bool]func() error{
		true:  func() error { return SendLeft(getenv) },
		false: func() error { return SendTransport(getenv, "shm") },
	} {
		require.NoError(t, SendLeft(getenv))
		require.NoError(t, send())
		r, err = ReadResult(path)
		require.NoError(t, err)
		require.Equal(t, want, r.Left, "who joins again has not left")
	}
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1, "temporary files remain")

	require.NoError(t, os.WriteFile(path, []byte(`{"version":`), 0o600))
	_, err = ReadResult(path)
	require.ErrorContains(t, err, "the result of a rank, "+path)
	path = filepath.Join(path, "x")
	require.Error(t, SendTransport(getenv, "shm"))
}
