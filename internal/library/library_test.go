package library

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHas(t *testing.T) {
	for function, want := range map[string]bool{
		Prefix + "ccl.(*Communicator).step":        true,
		Prefix + "ccl/config.Load":                 true,
		Prefix + "internal/reduce.many[...]":       true,
		Prefix + "examples/ddp.main.func1":         false,
		Prefix + "cmd/goccl/tool.Main":             false,
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

// The rooms are all directories with packages but those of programs.
func TestRooms(t *testing.T) {
	const root = "../.."
	dirs, err := os.ReadDir(root)
	require.NoError(t, err)
	var want []string
	for _, d := range dirs {
		if !d.IsDir() || slices.Contains([]string{"benchmarks", "cmd", "examples", "test"}, d.Name()) {
			continue
		}
		require.NoError(t, filepath.WalkDir(filepath.Join(root, d.Name()), func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".go") {
				want = append(want, d.Name())
				return fs.SkipAll
			}
			return err
		}))
	}
	require.Equal(t, want, rooms)
}
