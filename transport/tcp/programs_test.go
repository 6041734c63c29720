package tcp

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/goccl/goccl/algorithms"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/test/stress"
)

const preferred = `version: 1
algorithms: {direct: {module: direct}, ring: {module: ring}, tree: {module: tree}, hierarchical: {module: hierarchical, params: {chunk: 64}}}
rules: [{nodes: "2-", algorithm: hierarchical}, {algorithm: direct}]
`

// Random programs give the right results on nodes of one rank, and of several that share memory.
func TestPrograms(t *testing.T) {
	c, err := config.Parse("ccl.yaml", []byte(preferred))
	require.NoError(t, err)
	for seed, nodes := range [][]int{{0, 1}, {0, 1, 2}, {0, 0, 1, 1}} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			settings, err := c.Resolve(config.Request{Ranks: len(nodes), Timeout: time.Minute})
			require.NoError(t, err)
			p := stress.New(uint64(seed), stress.Options{
				Ranks: len(nodes), Events: 60, Longest: []int{100, 100_000}[seed%2], Algorithms: []string{"direct", "ring", "tree"},
			})
			eps := joinAll(t, processes(t, nodes, loopback(t, len(nodes), 2), 0))
			errs := make([]error, len(nodes))
			var all sync.WaitGroup
			for rank, ep := range eps {
				all.Go(func() {
					g, err := ccl.New(t.Context(), ep, ccl.WithSelector(settings))
					if err == nil {
						err = errors.Join(p.Run(t.Context(), g), g.Close())
					}
					errs[rank] = err
				})
			}
			all.Wait()
			require.NoError(t, errors.Join(errs...))
		})
	}
}
