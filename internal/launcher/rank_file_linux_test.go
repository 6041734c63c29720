package launcher

import (
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/screen"
)

// A disk that is full is warned of once, and neither ends the job nor keeps it from starting anew.
func TestFullDisk(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		what string
	}{
		"in a start":      {[]string{"lines", "20000"}, "; the job goes on, and what cannot be written is not in its files"},
		"before the next": {[]string{"unlucky", "1"}, "; this start writes no files"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := t.TempDir()
			if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64k,nr_inodes=6"); err != nil { // four files and two directories
				t.Skip("a file system that is full needs the rights of root: ", err)
			}
			defer func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) }()
			job := testJob(2, c.args...)
			var mu sync.Mutex
			var warnings []Warning
			job.Warn = func(w Warning) {
				mu.Lock()
				defer mu.Unlock()
				warnings = append(warnings, w)
			}
			out := screen.New()
			job.Stdout, job.Files = out, Files{Directory: filepath.Join(disk, "a"), Beside: true, Bytes: 1 << 20}
			outcome, earlier, err := (&Restarts{Max: 1}).Run(t.Context(), job)
			require.NoError(t, err)
			require.Len(t, warnings, 1)
			require.Equal(t, outcome.Job, warnings[0].Job)
			require.Equal(t, len(earlier), warnings[0].Restart)
			require.Regexp(t, "^--tee: .*: "+syscall.ENOSPC.Error()+c.what+"$", warnings[0].Text)
			if c.args[0] == "lines" {
				require.Equal(t, 40000, strings.Count(out.String(), "\n"))
			}
		})
	}
}
