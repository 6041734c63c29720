package grid_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/grid"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

func TestConformance(t *testing.T) { ccltest.Test(t, grid.Algorithm) }

func FuzzKernels(f *testing.F) { ccltest.Fuzz(f, grid.Algorithm) }

// With small chunks vectors go in many parts, and pipelines have many chunks.
func TestConformanceSmallChunks(t *testing.T) {
	ccltest.Test(t, grid.Algorithm, ccltest.Params("chunk: 64"))
}

// With extents that the suite does not choose the sums are right, messages go exactly to
// the neighbours that the phases name, and the cost is as declared.
func TestExtents(t *testing.T) {
	for _, kind := range grid.Algorithm.Topologies {
		for _, extents := range [][2]int{{1, 2}, {2, 1}, {1, 6}, {6, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 3}, {2, 5}, {3, 4}, {4, 4}} {
			for _, chunk := range []ccl.ByteSize{64, 1 << 40} { // the largest one that can be asked for
				w, h := extents[0], extents[1]
				t.Run(fmt.Sprintf("%v/%dx%d/chunk=%v", kind, w, h, chunk), func(t *testing.T) {
					for _, count := range []int{1, w*h - 1, 50, 301} {
						in, want := make([][]int64, w*h), make([]int64, count)
						for r := range in {
							for i := range count {
								in[r] = append(in[r], int64((r+1)*(i+1)))
								want[i] += in[r][i]
							}
						}
						got := allReduce(t, kind, w, h, chunk, in)
						for r := range in {
							require.Equal(t, want, got.out[r], "count %d, rank %d", count, r)
							require.Equal(t, receivers(got.topology, r), got.sentTo[r], "count %d, rank %d", count, r)
						}
						require.Equal(t, got.declared, got.took, "count %d", count)
					}
				})
			}
		}
	}
}

// receivers returns to whom a rank sends: Eastwards and Southwards around a torus;
// on a mesh to both sides along the rows and the first column.
func receivers(grid *topology.Topology, rank int) map[int]bool {
	ways := []topology.Direction{topology.East, topology.South}
	if grid.Kind() == topology.Mesh2DNoWrap {
		ways = []topology.Direction{topology.East, topology.West}
		if x, _ := grid.Coord(rank); x == 0 {
			ways = []topology.Direction{topology.East, topology.North, topology.South}
		}
	}
	found := map[int]bool{}
	for _, d := range ways {
		if peer, ok := grid.Neighbor(rank, d); ok {
			found[peer] = true
		}
	}
	return found
}

// The bits are those that the package comment promises: on a torus block d of block b of
// each part is reduced along the rows beginning at column b, and these along the column
// beginning at row d; on a mesh from East to West, and from South to North, whatever the
// chunk.
func TestBits(t *testing.T) {
	for _, kind := range grid.Algorithm.Topologies {
		for _, extents := range [][2]int{{1, 5}, {5, 1}, {2, 2}, {3, 2}, {2, 4}, {3, 3}} {
			for _, chunk := range []int{64, 256, 4096} {
				for _, count := range []int{1, 7, 50, 1000} {
					w, h := extents[0], extents[1]
					t.Run(fmt.Sprintf("%v/%dx%d/chunk=%d/count=%d", kind, w, h, chunk, count), func(t *testing.T) {
						in := make([][]float32, w*h)
						rnd := rand.New(rand.NewPCG(uint64(w), uint64(h)))
						for r := range in {
							for range count {
								in[r] = append(in[r], float32(rnd.NormFloat64()))
							}
						}
						want := make([]float32, count)
						for i := range want {
							columns, rows := order(kind, w, h, chunk, count, i)
							want[i] = sum(in, i, columns, rows)
						}
						for _, got := range allReduce(t, kind, w, h, ccl.ByteSize(chunk), in).out {
							require.Equal(t, want, got)
						}
					})
				}
			}
		}
	}
}

// order returns the order in which the columns of each row, and then the rows, are reduced
// to element i of count.
func order(kind topology.Kind, w, h, chunk, count, i int) (columns, rows []int) {
	if kind == topology.Mesh2DNoWrap {
		return around(w-1, -1, w), around(h-1, -1, h)
	}
	parts := (4*count + w*chunk - 1) / (w * chunk)
	_, i, count = locate(i, count, parts)
	b, i, count := locate(i, count, w)
	d, _, _ := locate(i, count, h)
	return around(b, 1, w), around(d, 1, h)
}

// locate returns the block, of n of count elements, that has element i, the position of i
// in it, and its length.
func locate(i, count, n int) (block, at, length int) {
	for b := range n {
		if lo, hi := ccl.BlockRange(count, b, n); i < hi {
			return b, i - lo, hi - lo
		}
	}
	panic("no block")
}

// around returns the n positions of a ring, from first on.
func around(first, step, n int) []int {
	var order []int
	for k := range n {
		order = append(order, (first+step*k+n)%n)
	}
	return order
}

// sum adds up element i of the inputs, each row in the order of columns, and then the rows.
// Adding to zero changes no bits.
func sum(in [][]float32, i int, columns, rows []int) (sum float32) {
	for _, y := range rows {
		var row float32
		for _, x := range columns {
			row += in[y*len(columns)+x][i]
		}
		sum += row
	}
	return sum
}

// outcome is the result and the cost of an all-reduce.
type outcome[T interface {
	~uint8 | ~int32 | ~int64 | ~float32 | ~float64
}] struct {
	topology       *topology.Topology
	out            [][]T          // by rank
	sentTo         []map[int]bool // by rank
	took, declared ccl.Cost
}

// recorder is an endpoint that records the ranks to which its rank sends.
type recorder struct {
	transport.Endpoint
	sentTo map[int]bool
}

func (r *recorder) Put(to int, m *transport.Message) (int, error) {
	r.sentTo[to] = true
	return r.Endpoint.Put(to, m)
}

// allReduce sums the ranks' inputs by grid.
func allReduce[T interface {
	~uint8 | ~int32 | ~int64 | ~float32 | ~float64
}](t *testing.T, kind topology.Kind, w, h int, chunk ccl.ByteSize, in [][]T) outcome[T] {
	ranks := w * h
	seen := outcome[T]{out: make([][]T, ranks), sentTo: make([]map[int]bool, ranks)}
	took, declared := make([]ccl.Cost, ranks), make([]ccl.Cost, ranks)
	kernel := *grid.Algorithm.Kernels[ccl.CollAllReduce]
	run := kernel.Run
	kernel.Run = func(c *ccl.Call) error {
		err := run(c)
		took[c.Rank()], declared[c.Rank()] = c.Traffic(), kernel.Cost(c.Shape())
		return err
	}
	watched := *grid.Algorithm
	watched.Kernels = map[ccl.Collective]*ccl.Kernel{ccl.CollAllReduce: &kernel}
	settings, err := resolve(t, &watched, ranks, fmt.Sprintf(`version: 1
defaults: {algorithm: grid}
algorithms: {grid: {module: grid, params: {chunk: %d}}}
topology: {kind: %v, count: %d, w: %d, h: %d}
`, chunk, kind, ranks, w, h))
	require.NoError(t, err)
	seen.topology = settings.Topology()

	errs := make([]error, ranks)
	var wg sync.WaitGroup
	for r, ep := range local.New(ranks) {
		seen.out[r], seen.sentTo[r] = make([]T, len(in[r])), map[int]bool{}
		wg.Go(func() {
			c, err := ccl.New(context.Background(), &recorder{ep, seen.sentTo[r]}, ccl.WithSelector(settings))
			if err != nil {
				errs[r] = err
				return
			}
			defer c.Close()
			errs[r] = ccl.AllReduce(context.Background(), c, in[r], seen.out[r], ccl.Sum)
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	for r := range ranks {
		require.Equal(t, declared[0], declared[r])
		seen.took.Steps = max(seen.took.Steps, took[r].Steps)
		seen.took.Bytes += took[r].Bytes
	}
	seen.declared = declared[0]
	return seen
}

func resolve(t *testing.T, a *ccl.Algorithm, ranks int, text string) (*config.Settings, error) {
	cfg, err := config.Parse("test.yaml", []byte(text))
	require.NoError(t, err)
	return cfg.Resolve(config.Request{Registry: ccl.Registry{a.Name: a}, Ranks: ranks})
}

func TestParams(t *testing.T) {
	for chunk, ok := range map[ccl.ByteSize]bool{-1: false, 0: false, 63: false, 64: true, 1 << 30: true} {
		require.Equal(t, ok, (&grid.Params{Chunk: chunk}).Validate() == nil, "chunk %v", chunk)
	}
	require.NoError(t, grid.Algorithm.Params().(*grid.Params).Validate())
}

func TestRegistered(t *testing.T) {
	got, ok := ccl.DefaultRegistry()["grid"]
	require.True(t, ok)
	require.Same(t, grid.Algorithm, got)
}

// An algorithm for 2-D topologies cannot be chosen on a ring.
func TestNotOnARing(t *testing.T) {
	const entries = "version: 1\nalgorithms: {mine: {module: grid}}\n"
	for key, choice := range map[string]string{
		"defaults.algorithm": "defaults: {algorithm: mine}\n",
		"rules[1].algorithm": "rules: [{algorithm: mine}]\n",
	} {
		_, err := resolve(t, grid.Algorithm, 4, entries+choice+"topology: {kind: ring_1d}\n")
		mistake, ok := errors.AsType[*config.Error](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, key, mistake.Key)
		for _, name := range []string{"grid", "torus_2d", "mesh_2d_no_wrap", "ring_1d"} {
			require.ErrorContains(t, err, name)
		}
		for _, kind := range grid.Algorithm.Topologies {
			_, err := resolve(t, grid.Algorithm, 4, entries+choice+fmt.Sprintf("topology: {kind: %v}\n", kind))
			require.NoError(t, err)
		}
	}
}

// Without w and h the grid is a square, or the configuration is an error.
func TestSquare(t *testing.T) {
	const text = "version: 1\ndefaults: {algorithm: mine}\nalgorithms: {mine: {module: grid}}\ntopology: {kind: torus_2d}\n"
	settings, err := resolve(t, grid.Algorithm, 9, text)
	require.NoError(t, err)
	require.Equal(t, "torus_2d 3x3 (9 ranks)", settings.Topology().String())

	_, err = resolve(t, grid.Algorithm, 6, text)
	_, ok := errors.AsType[*config.Error](err)
	require.True(t, ok, "%v", err)
	require.ErrorContains(t, err, "6 is not a square")
}
