package processes

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	byTCP   = flag.Bool("tcp", false, "all tests connect their ranks by TCP")
	perNode = flag.Int("pernode", 1, "number of ranks on each node of those that TCP connects")
)

// What holds for ranks that share memory holds for ranks that TCP connects, each on a node of its own. This is a sample: make nodes runs
// more.
func TestByTCP(t *testing.T) {
	defer func(k, p int) { *kills, *randomPrograms = k, p }(*kills, *randomPrograms)
	*kills, *randomPrograms = 8, 4
	for name, test := range map[string]func(*testing.T){
		"Killed": TestKilled, "RandomPrograms": TestRandomPrograms, "Same": TestSameAsProcesses, "Mistake": TestMistakeAtInit,
		"Configuration": TestAnotherConfiguration, "Refusal": TestReasonOfRefusal,
	} {
		t.Run(name, test)
	}
}

// The example trains the same weights on all ranks, on nodes with one rank and with two; with logical shards those of
// goroutines.
func TestExampleByTCP(t *testing.T) {
	ddp := filepath.Join(t.TempDir(), "ddp")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", ddp, "github.com/goccl/goccl/examples/ddp").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for perNode := 1; perNode <= 2; perNode++ {
		outs := runByTCP(t, 4, perNode, nil, ddp, "-epochs", "1")
		require.Contains(t, outs[0], " over tcp ")
		require.Contains(t, strings.Join(outs, ""), "weights: equal bit by bit on all 4 ranks")
	}

	flags := []string{"-shards", "8", "-epochs", "1"}
	out, err = exec.CommandContext(t.Context(), ddp, append(flags, "-ranks", "3", "-plot", "")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	sum := regexp.MustCompile(`sha256 \w+`).Find(out)
	require.NotEmpty(t, sum, "%s", out)
	for ranks, perNode := range map[int]int{2: 1, 3: 2} {
		outs := runByTCP(t, ranks, perNode, nil, append([]string{ddp}, flags...)...)
		require.Contains(t, outs[0], " over tcp ")
		require.Contains(t, outs[0], string(sum), "%d ranks", ranks)
	}
}

// All kernels give the results of the sequential definition.
func TestKernelsByTCP(t *testing.T) {
	suite := filepath.Join(t.TempDir(), "suite")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", suite, "github.com/goccl/goccl/ccl/ccltest").CombinedOutput()
	require.NoError(t, err, "%s", out)
	calls := 1
	if *byTCP {
		calls = 4
	}
	for seed, c := range []struct{ ranks, perNode, levels int }{{4, 2, 2}, {3, 1, 1}} {
		if testing.Short() && seed > 0 {
			break
		}
		for _, out := range runByTCP(t, c.ranks, c.perNode, []string{fmt.Sprint("TEST_GOCCL_CALLS=", calls), fmt.Sprint("TEST_GOCCL_SEED=", seed), fmt.Sprint("TEST_GOCCL_LEVELS=", c.levels)}, suite) {
			require.Equal(t, "passed\n", out)
		}
	}
}

// runByTCP runs a program as ranks that TCP connects, and returns what each has written. They succeed.
func runByTCP(t *testing.T, ranks, perNode int, env []string, program ...string) []string {
	t.Helper()
	dir := t.TempDir()
	outs, errs := make([]string, ranks), make([]error, ranks)
	var running sync.WaitGroup
	for rank := range ranks {
		c := exec.CommandContext(t.Context(), program[0], program[1:]...)
		c.Env = append(append(clean(os.Environ()), "GOCCL_TRANSPORT=tcp", "GOCCL_SHM_NAME=/tcp", fmt.Sprint("GOCCL_SHM_RANK=", rank), fmt.Sprint("GOCCL_SHM_SIZE=", ranks),
			fmt.Sprint("GROUP_RANK=", rank/perNode), "GOCCL_RESULT_FILE="+filepath.Join(dir, fmt.Sprint("result-", rank))), env...)
		running.Go(func() {
			out, err := c.CombinedOutput()
			outs[rank], errs[rank] = string(out), err
		})
	}
	running.Wait()
	for rank, err := range errs {
		require.NoError(t, err, "rank %d: %s", rank, outs[rank])
	}
	return outs
}
