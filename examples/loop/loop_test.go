package loop_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// errorReturn is what Go needs after a call that may fail; the call itself stays.
var errorReturn = regexp.MustCompile(`(?m)^\t+if err != nil \{\n\t+return err\n\t+\}\n|( err != nil) \{\n\t+(?:return err|log\.Fatal\(err\))\n\t+\}$`)

// code returns the lines of a program without blank ones and those that only return an error.
func code(t *testing.T, program string) []string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(program, "main.go"))
	require.NoError(t, err)
	lines := strings.Split(errorReturn.ReplaceAllString(string(source), "$1"), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// added returns the lines of to that are not in the longest common subsequence of both.
func added(from, to []string) (lines []string) {
	common := make([][]int, len(from)+1) // of from[i:] and to[j:]
	common[len(from)] = make([]int, len(to)+1)
	for i := len(from) - 1; i >= 0; i-- {
		common[i] = make([]int, len(to)+1)
		for j := len(to) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if from[i] == to[j] {
				common[i][j] = max(common[i][j], common[i+1][j+1]+1)
			}
		}
	}
	for i, j := 0, 0; j < len(to); {
		switch {
		case i < len(from) && from[i] == to[j] && common[i][j] == common[i+1][j+1]+1:
			i, j = i+1, j+1
		case i < len(from) && common[i+1][j] == common[i][j]:
			i++
		default:
			lines = append(lines, to[j])
			j++
		}
	}
	return lines
}

// The loop of one rank becomes that of many by at most 35 lines that are added or changed.
func TestDifference(t *testing.T) {
	lines := added(code(t, "alone"), code(t, "ranks"))
	t.Log(len(lines), "lines:\n", strings.Join(lines, "\n"))
	require.LessOrEqual(t, len(lines), 35)
	require.Equal(t, []string{"b", "d"}, added(strings.Split("a c", " "), strings.Split("a b c d", " ")), "added counts")
}

// run runs a program in a folder, with a number of ranks, and returns what it prints.
func run(t *testing.T, folder string, ranks int, program string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = folder
	c.Env = append(os.Environ(), "GOCCL_CONFIG=", "GOCCL_ALGORITHM=", "GOCCL_TRANSPORT=", "GOCCL_TIMEOUT=", fmt.Sprint("GOCCL_WORLD_SIZE=", ranks))
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// One rank prints what the program without goccl prints; on any number of ranks, which are goroutines or processes, a run that
// goes on from a checkpoint prints what one without a break does, and the model learns.
func TestPrograms(t *testing.T) {
	bin := t.TempDir()
	out, err := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./alone", "./ranks", "../../cmd/goccl").CombinedOutput()
	require.NoError(t, err, string(out))
	together := t.TempDir() // each has a checkpoint of its own
	alone := run(t, together, 1, filepath.Join(bin, "alone"))
	require.Equal(t, alone, run(t, together, 1, filepath.Join(bin, "ranks")))
	for _, ranks := range []int{1, 2, 3, 4, 7} {
		t.Run(fmt.Sprint("ranks=", ranks), func(t *testing.T) {
			whole := run(t, t.TempDir(), ranks, filepath.Join(bin, "ranks"))
			require.Regexp(t, `epoch 5: loss 0\.\d+, accuracy 0\.9`, whole)
			if ranks == 1 {
				require.Equal(t, alone, whole)
			}
			folder := t.TempDir()
			first := run(t, folder, ranks, filepath.Join(bin, "ranks"), "-epochs", "2")
			require.Equal(t, whole, first+run(t, folder, ranks, filepath.Join(bin, "ranks")))
			if _, err := os.Stat("/dev/shm"); err != nil {
				return // processes need Linux
			}
			require.Equal(t, whole, run(t, t.TempDir(), ranks, filepath.Join(bin, "goccl"), "run", "-n", fmt.Sprint(ranks), "--no-prefix", filepath.Join(bin, "ranks")))
		})
	}
}
