//go:build unix

package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/screen"
)

func init() {
	// Writes so many lines.
	programs["lines"] = func(args []string) {
		for i := range number(args[0]) {
			fmt.Printf("line %04d\n", i)
		}
	}
}

// contents returns the files of a directory by their names.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := make(map[string]string)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		all[e.Name()] = string(text)
	}
	return all
}

// A full file gets a number, and few of them remain, each of whole lines.
func TestFullFiles(t *testing.T) {
	dir := t.TempDir()
	file, err := newFile(filepath.Join(dir, "f"))
	require.NoError(t, err)
	f := &rankFile{File: file, name: file.Name(), most: 10}
	for i := range 9 {
		require.NoError(t, f.write(fmt.Appendf(nil, "line %d", i)))
		require.NoError(t, f.write([]byte(" ends\nnext")))
		require.NoError(t, f.write([]byte("\n")))
	}
	require.Equal(t, map[string]string{
		"f": "next\n", "f.1": "next\nline 8 ends\n", "f.2": "next\nline 7 ends\n", "f.3": "next\nline 6 ends\n",
	}, contents(t, dir))

	// A line that does not end fills a file as well.
	long := strings.Repeat("x", maxLine)
	for range 3 {
		require.NoError(t, f.write([]byte(long)))
	}
	require.Equal(t, []int{maxLine, 2*maxLine + len("next\n")}, []int{len(contents(t, dir)["f"]), len(contents(t, dir)["f.1"])})

	// An error names the file by the name that it has.
	require.NoError(t, f.Close())
	require.ErrorContains(t, f.write([]byte("x")), "write "+filepath.Join(dir, "f")+": ")
}

// Where no new file can be made, the old one is written on.
func TestFullFileStays(t *testing.T) {
	dir := t.TempDir()
	file, err := newFile(filepath.Join(dir, "f"))
	require.NoError(t, err)
	var lost []error
	f := &rankFile{File: file, name: file.Name(), most: 4, lose: func(err error) { lost = append(lost, err) }}
	defer func() { require.NoError(t, f.Close()) }()
	require.NoError(t, os.Mkdir(f.name+".new", 0o700))
	require.NoError(t, f.write([]byte("four\n")))
	require.Len(t, lost, 1)
	require.ErrorIs(t, lost[0], os.ErrExist)
	require.NoError(t, os.Remove(f.name+".new"))
	require.Equal(t, map[string]string{"f": "four\n"}, contents(t, dir))
	require.NoError(t, f.write([]byte("more\n")))
	require.NoError(t, f.write([]byte("new")))
	require.Equal(t, map[string]string{"f": "new", "f.1": "four\nmore\n"}, contents(t, dir))
	require.Len(t, lost, 1)
}

// The files of a job have the last lines, and nothing of those is missing.
func TestRotation(t *testing.T) {
	job := testJob(2, "lines", "30000") // of 10 bytes
	out := screen.New()
	job.Stdout, job.Files = out, Files{Directory: t.TempDir(), Beside: true, Bytes: 64 << 10}
	_, err := job.Run(t.Context())
	require.NoError(t, err)
	all := contents(t, job.Files.Directory)
	require.Len(t, all, 10, "two empty ones of standard error")
	for rank := range 2 {
		name := fmt.Sprintf("rank-%d.out", rank)
		text := all[name+".3"] + all[name+".2"] + all[name+".1"] + all[name]
		require.Greater(t, len(text), 3*64<<10)
		require.Less(t, len(text), 4*64<<10+4*10)
		lines := slices.Collect(strings.Lines(text))
		for i, line := range lines {
			require.Equal(t, fmt.Sprintf("line %04d\n", 30000-len(lines)+i), line)
		}
	}
}
