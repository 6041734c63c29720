package steps_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/algorithms/internal/steps"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/topology"
	"github.com/goccl/goccl/transport/local"
)

// A panic in a step is reported at the line of the kernel that called the step.
func TestPanicPlace(t *testing.T) {
	for _, err := range errorsOf(t, func(c *ccl.Call) error { return steps.Chain(c, topology.None, 1-c.Rank(), 1, nil, nil) }) {
		require.Regexp(t, `kernel crash all_reduce panicked at chain_test.go:\d+: `, err.Error())
	}
}

// An error of a verb in a step names what the kernel's line calls, which is the step.
func TestVerbOfAStep(t *testing.T) {
	for _, err := range errorsOf(t, func(c *ccl.Call) error { return steps.SendRecv(c, 7, c.In(), topology.None, ccl.Buffer{}) }) {
		require.Regexp(t, `: steps\.SendRecv at chain_test.go:\d+, to rank 7: `, err.Error())
	}
}

// errorsOf returns the errors of two ranks whose kernel is run.
func errorsOf(t *testing.T, run func(c *ccl.Call) error) []error {
	t.Helper()
	crash := &ccl.Algorithm{Name: "crash", Doc: "of a test", Kernels: map[ccl.Collective]*ccl.Kernel{
		ccl.CollAllReduce: {
			Doc:  "of a test",
			Cost: func(ccl.Shape) ccl.Cost { return ccl.Cost{} },
			Run:  run,
		},
	}}
	cfg, err := config.Parse("test", []byte("version: 1\ndefaults: {algorithm: crash}\nalgorithms: {crash: {module: crash}}\n"))
	require.NoError(t, err)
	settings, err := cfg.Resolve(config.Request{Registry: ccl.Registry{crash.Name: crash}, Ranks: 2})
	require.NoError(t, err)
	errs := make([]error, 2)
	var ranks sync.WaitGroup
	for r, ep := range local.New(2) {
		ranks.Go(func() {
			c, err := ccl.New(t.Context(), ep, ccl.WithSelector(settings))
			if err != nil {
				errs[r] = err
				return
			}
			defer c.Close()
			x := make([]float32, 5)
			errs[r] = ccl.AllReduce(t.Context(), c, x, x, ccl.Sum, ccl.WithTimeout(20*time.Second))
		})
	}
	ranks.Wait()
	return errs
}
