package launchenv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ranks read which rank has ended from the file beside their results; one that is missing or torn says
// nothing.
func TestEnded(t *testing.T) {
	dir := t.TempDir()
	getenv := func(name string) string {
		return map[string]string{ResultVariable: filepath.Join(dir, "result-1")}[name]
	}
	require.Nil(t, ReadEnded(getenv))
	ended := &Ended{Version: 1, Job: "job", Rank: 2, PID: 41}
	require.NoError(t, ended.Send(dir))
	require.Equal(t, ended, ReadEnded(getenv))
	require.Nil(t, ReadEnded(func(string) string { return "" }))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ended"), []byte("{"), 0o600))
	require.Nil(t, ReadEnded(getenv))
}
