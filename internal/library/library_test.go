package library

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHas(t *testing.T) {
	for function, want := range map[string]bool{
		Prefix + "ccl.(*engine).step":              true,
		Prefix + "ccl/config.Load":                 true,
		Prefix + "internal/reduce.many[...]":       true,
		Prefix + "examples/ddp.main.func1":         false,
		Prefix + "cmd/goccl/tool.Main":             false,
		Prefix + "test/calls.(*typed[...]).Make":   true,
		Prefix + "test/callsplus.Make":             false,
		Prefix + "test/stress.(*Program).Run":      false,
		Prefix + "launcher.Run":                    false,
		Prefix + "ccl":                             false,
		"github.com/goccl/goccl.DefaultConfig":     false,
		"github.com/ada/train/ccl.(*Model).Step":   false,
		"main.main":                                false,
		"github.com/goccl/gocclplus/ccl.AllReduce": false,
	} {
		require.Equal(t, want, Has(function, "/x/a.go"), function)
		require.False(t, Has(function, "/x/a_test.go"), "a test is a program: %s", function)
	}
}

// The rooms are all directories with packages but those of programs, and what the suite calls with.
func TestRooms(t *testing.T) {
	require.Equal(t, slices.Sorted(slices.Values(append(roomsOf(t, "../.."), "test/calls"))), rooms)
}

// roomsOf returns the directories in root with packages but those of programs.
func roomsOf(t *testing.T, root string) (found []string) {
	t.Helper()
	dirs, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, d := range dirs {
		if !d.IsDir() || slices.Contains([]string{"benchmarks", "cmd", "examples", "test"}, d.Name()) {
			continue
		}
		require.NoError(t, filepath.WalkDir(filepath.Join(root, d.Name()), func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && isForeign(path):
				return fs.SkipDir
			case !e.IsDir() && strings.HasSuffix(path, ".go"):
				found = append(found, d.Name())
				return fs.SkipAll
			}
			return nil
		}))
	}
	return found
}

// isForeign reports whether a directory has no packages of the module: the go command ignores it, or it is another module.
func isForeign(dir string) bool {
	name := filepath.Base(dir)
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || name[0] == '.' || name[0] == '_' || name == "vendor" || name == "testdata"
}

// What lies in a checkout without being of the module makes no room: caches, tools, copies of other modules.
func TestRoomsAreOfTheModule(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{
		"ccl/ccl.go", ".cache/a.go", ".cache/b/a.go", "_old/a.go", "vendor/example.com/a/a.go", "cache/example.com/a@v1.0.0/go.mod",
		"cache/example.com/a@v1.0.0/a.go", "docs/.tool/a.go", "docs/testdata/a.go", "dir.go/text",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), nil, 0o600))
	}
	require.Equal(t, []string{"ccl"}, roomsOf(t, root))
}

func TestIsStandard(t *testing.T) {
	of := func(f any) bool {
		function := runtime.FuncForPC(reflect.ValueOf(f).Pointer())
		file, _ := function.FileLine(function.Entry())
		return IsStandard(function.Name(), file)
	}
	require.True(t, of(runtime.GC))
	require.True(t, of(strings.Repeat))
	require.True(t, of(filepath.WalkDir))
	require.False(t, of(TestIsStandard))
	require.False(t, of(require.True))
}
