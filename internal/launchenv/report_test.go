package launchenv

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/failure"
	"github.com/stretchr/testify/require"
)

// ReadReport reads what Send wrote last.
func TestReports(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r")
	getenv := func(name string) string {
		if name == ReportVariable {
			return file
		}
		return ""
	}
	none, err := ReadReport(file)
	require.NoError(t, err)
	require.Nil(t, none)
	r := &Report{
		Version: 1, Rank: 2, PID: 3, Time: time.Now().Round(0), Kind: FailedPanic, Message: "panic: \x00 \xff",
		Frames: []Frame{{"main.f", "/a/f.go", 7}}, Cause: failure.Aborted, Ranks: []int{1},
	}
	require.NoError(t, (&Report{Message: "another"}).Send(getenv))
	require.NoError(t, r.Send(getenv))
	got, err := ReadReport(file)
	require.NoError(t, err)
	require.True(t, r.Time.Equal(got.Time))
	got.Time = r.Time
	r.Message = "panic: \x00 \ufffd"
	require.Equal(t, r, got)
	require.Equal(t, "main.f at f.go:7", got.Frames[0].String())

	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = ReadReport(file)
	require.ErrorContains(t, err, file)
	require.NoError(t, TakeBack(getenv))
	require.NoError(t, TakeBack(getenv), "twice")
	none, err = ReadReport(file)
	require.NoError(t, err)
	require.Nil(t, none)

	nothing := func(string) string { return "" }
	require.NoError(t, r.Send(nothing))
	require.NoError(t, TakeBack(nothing))
	require.Error(t, r.Send(func(string) string { return filepath.Join(file, "no", "such", "directory") }))
}
