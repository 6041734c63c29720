package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/examples/digits"
)

// seeded returns weights that depend on a seed.
func seeded(seed uint64) gorgonia.InitWFn {
	random := rand.New(rand.NewPCG(seed, 0))
	return func(_ tensor.Dtype, shape ...int) any {
		values := make([]float32, shape[0]*shape[1])
		for i := range values {
			values[i] = random.Float32()/4 - 0.125
		}
		return values
	}
}

// Ranks follow Gorgonia alone on the same batches, although each starts with other weights: 84 samples are a multiple of
// each number of ranks, so that only the order of additions in float32 differs. That their weights are equal, train
// verifies.
func TestFollowsOneRank(t *testing.T) {
	want := trainAlone(t, 84, 7)
	require.Len(t, want, 63)
	require.Less(t, want[62], want[0]/2, "it learns")
	for _, ranks := range []int{1, 2, 3, 4, 7} {
		t.Run(fmt.Sprint("ranks=", ranks), func(t *testing.T) {
			all := make([][]float32, ranks)
			require.NoError(t, dist.Spawn(func(ctx context.Context, rank int) (err error) {
				all[rank], err = train(ctx, 84, seeded(7+uint64(rank)))
				return err
			}, dist.WithRanks(ranks)))
			for step, loss := range want {
				mean := float32(0)
				for _, losses := range all {
					mean += losses[step] / float32(ranks)
				}
				require.InEpsilon(t, loss, mean, 1e-4, "step %d", step)
			}
		})
	}
}

// trainAlone is the oracle: Gorgonia without goccl. It returns the loss of each step.
func trainAlone(t *testing.T, batch int, seed uint64) (losses []float32) {
	t.Helper()
	set, err := digits.Load[float32]()
	require.NoError(t, err)
	images, loss, weights := newModel(batch, seeded(seed))
	_, err = gorgonia.Grad(loss, weights...)
	require.NoError(t, err)
	machine := gorgonia.NewTapeMachine(images.Graph(), gorgonia.BindDualValues(weights...))
	solver := gorgonia.NewVanillaSolver(gorgonia.WithLearnRate(1))
	for epoch := range 3 {
		for indices := range slices.Chunk(ddp.Sampler{Samples: set.Len() / batch * batch, Ranks: 1}.Indices(epoch), batch) {
			copy(images.Value().Data().([]float32), set.Pick(indices).Images)
			require.NoError(t, machine.RunAll())
			losses = append(losses, loss.Value().Data().(float32))
			require.NoError(t, solver.Step(gorgonia.NodesToValueGrads(weights)))
			machine.Reset()
		}
	}
	return losses
}

// The program trains on goroutines and on processes of goccl run.
func TestProgram(t *testing.T) {
	bin := t.TempDir()
	for source, folder := range map[string]string{".": ".", "./cmd/goccl": filepath.Join("..", "..")} {
		out, err := exec.Command("go", "-C", folder, "build", "-o", bin+string(filepath.Separator), source).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	program := filepath.Join(bin, "gorgonia")
	for _, command := range [][]string{{program}, {filepath.Join(bin, "goccl"), "run", "-n", "2", "--no-prefix", program}} {
		c := exec.CommandContext(t.Context(), command[0], command[1:]...)
		c.Env = append(os.Environ(), "GOCCL_CONFIG=", "GOCCL_ALGORITHM=", "GOCCL_TRANSPORT=", "GOCCL_TIMEOUT=", "GOCCL_WORLD_SIZE=")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Regexp(t, regexp.MustCompile(`first and last loss: 0\.\d+ 0\.0\d+`), string(out))
	}
}

// The program has at most 80 lines of code.
func TestLines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, len(regexp.MustCompile(`(?m)^\s*[^\s/].*$`).FindAll(source, -1)), 80)
}
