package ddp_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/half"
	_ "github.com/goccl/goccl/transport/mpi"
)

// resumeVariable has the steps from and until which ranks train, and the directory of their checkpoints.
const resumeVariable = "TEST_DDP_SHARDS"

func init() { works["shards resumed"] = resumeShards }

// resumeShards goes on with trainings of all types and numbers of shards, and compares the weights with the definition. A
// rank that is right leaves a file of its number there. The tests of MPI and of nodes start it as well.
func resumeShards(rank, _ int, _ *outcome) error {
	var c logicalTraining
	if _, err := fmt.Sscan(os.Getenv(resumeVariable), &c.from, &c.until, &c.path); err != nil {
		return err
	}
	dir := c.path
	c.lengths, c.kind = slices.Clone(logicalLengths), "own"
	c.lengths[1] = 700
	for _, c.shards = range []int{8, 12, 16} {
		c.path = filepath.Join(dir, fmt.Sprint("shards-", c.shards))
		if err := errors.Join(resumeOf[float32](c, rank), resumeOf[float64](c, rank), resumeOf[half.BFloat16](c, rank)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, strconv.Itoa(rank)), nil, 0o600)
}

func resumeOf[T ddp.Float](c logicalTraining, rank int) error {
	c.path += fmt.Sprintf("-%v.safetensors", ccl.DTypeOf[T]())
	got, err := trainLogical[T](c, rank)
	if err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	isSame := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	if !slices.EqualFunc(got, expected[T](c.lengths, c.shards, c.until), isSame) {
		return fmt.Errorf("%s: the weights after %d steps are others", c.path, c.until)
	}
	return nil
}

// Trainings whose ranks become more and fewer at each checkpoint, on goroutines, on processes and by TCP, have the weights
// of the definition.
func TestLogicalShardsAcross(t *testing.T) {
	kinds := kinds()
	if runtime.GOOS == "linux" {
		kinds["tcp"] = func(t *testing.T, name string, ranks int) []outcome {
			return startProcesses(t, name, ranks, byTCP)
		}
	}
	numbers := []int{5, 1, 8, 3, 2, 7, 4, 6}
	if testing.Short() {
		numbers = []int{3}
	}
	dir, step := t.TempDir(), 0
	for _, ranks := range numbers {
		for _, kind := range []string{"goroutines", "tcp", "processes"} {
			if do := kinds[kind]; do != nil {
				t.Run(fmt.Sprint(kind, "=", ranks), func(t *testing.T) {
					t.Setenv(resumeVariable, fmt.Sprint(step, step+1, dir))
					succeeded(t, do(t, "shards resumed", ranks))
				})
				step++
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	require.NoError(t, err)
	require.Len(t, files, 9)
}
