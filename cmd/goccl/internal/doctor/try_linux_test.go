package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Linux has all features, and the probes leave nothing behind.
func TestProbes(t *testing.T) {
	dir, err := os.MkdirTemp(sharedMemory, "goccl-doctor-test-")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	findings := tryProbes(dir)
	require.Len(t, findings, len(probes))
	for _, f := range findings {
		if f.Name != "MADV_POPULATE_WRITE" && f.Name != "pidfd" { // kernels may be older
			require.Equal(t, OK, f.Verdict, "%+v", f)
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, examineDirectory(dir).err)
	require.True(t, examineDirectory(dir).tmpfs)
}

// Without a directory there is one problem, and dependent probes are not tried.
func TestTryWithoutDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	require.ErrorIs(t, examineDirectory(dir).err, unix.ENOENT)
	findings := tryProbes(dir)
	require.Equal(t, 1, Count(findings, Problem))
	require.Equal(t, Problem, findings[0].Verdict)
	require.Contains(t, findings[0].Says, "O_TMPFILE: no such file or directory: jobs cannot make their memory")
	untried := 0
	for _, f := range findings {
		if strings.HasPrefix(f.Says, "not tried") {
			untried++
		}
	}
	require.Equal(t, 5, untried)
}

// A file instead of the directory is not writable.
func TestExamineFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, examineDirectory(file).err, "this user may not write there")
}

// A failed probe has the verdict and the remedy of its feature.
func TestProbeFails(t *testing.T) {
	for _, p := range probes {
		f := p.finding(errors.New("refused"))
		require.Equal(t, p.verdict, f.Verdict)
		require.Equal(t, "refused: "+p.without, f.Says)
		require.NotEmpty(t, f.Do)
		require.NotEqual(t, OK, p.verdict)
	}
}

// Two ranks meet; if they cannot, the finding has the reason. Neither leaves anything.
func TestTrial(t *testing.T) {
	require.Equal(t, OK, trial(t.Context()).Verdict, "%+v", trial(t.Context()))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no more time"))
	f := trial(ctx)
	require.Equal(t, Problem, f.Verdict)
	require.Contains(t, f.Says, "no more time")
	left, err := filepath.Glob(sharedMemory + "/goccl-*-doctor-*")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestProcesses(t *testing.T) {
	var findings []Finding
	Processes(t.Context(), "", func(f Finding) { findings = append(findings, f) }, 2, 8)
	require.Zero(t, Count(findings, Problem), "%+v", findings)
	require.Equal(t, "a job", findings[len(findings)-1].Name)
}

// Where a control group leaves too little memory for the trial, it is not made: it would end a job in the group.
func TestProcessesWithoutMemory(t *testing.T) {
	var job Finding
	Processes(t.Context(), limited(t, 1<<30, 1<<30-8<<20), func(f Finding) { job = f }, 2, 8)
	require.Equal(t, Note, job.Verdict)
	require.Equal(t, "a job", job.Name)
	require.Equal(t, "not tried: 8.0 MiB of memory are available", job.Says)
	require.Equal(t, "free more than 16.4 MiB", job.Do)
}
