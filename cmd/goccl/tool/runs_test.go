package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
)

const ownRules = `version: 1
algorithms:
  direct: {module: direct}
  small_ring: {module: ring, params: {chunk: 4KiB}}
  binomial: {module: tree, params: {kind: binomial}}
rules:
  - {collective: all_reduce, bytes: "16KiB-", ranks: "3-", dtype: float32, algorithm: small_ring}
  - {bytes: "-1KiB", ranks: "-3", algorithm: direct}
  - {op: max, algorithm: binomial}
  - {collective: broadcast, bytes: "4KiB-", algorithm: binomial}
`

// Explained is what runs: every call of the table is made, by every rank, and the
// communicator says which kernel ran it and why. What is said to be refused is
// refused, with the same words.
func TestExplainedIsWhatRuns(t *testing.T) {
	alone(t)
	writeFile(t, "own.yaml", ownRules)
	r := reported(t, "explain", "--config", "own.yaml", "--ranks", "2,3,5",
		"--bytes", "8,1KiB,4KiB,16KiB,64KiB", "--dtype", "float32,int64", "--op", "sum,max")
	entries, refused := map[string]int{}, 0
	for _, w := range r.Worlds {
		err := dist.Spawn(func(context.Context, int) error {
			if err := dist.InitProcessGroup("ccl", dist.WithConfigFile("own.yaml")); err != nil {
				return err
			}
			for _, c := range w.Calls {
				if err := c.run(); err != nil {
					return fmt.Errorf("%+v: %w", *c, err)
				}
			}
			return dist.DestroyProcessGroup()
		}, dist.Ranks(w.Ranks))
		require.NoError(t, err)
		for _, c := range w.Calls {
			entries[c.Entry]++
			if c.Refused != "" {
				refused++
			}
		}
	}
	for _, entry := range []string{"direct", "small_ring", "binomial"} {
		require.NotZero(t, entries[entry], "no call was done by %s", entry)
	}
	require.NotZero(t, refused)
}

// run makes the call, and compares it with what is said about it.
func (c *call) run() error {
	if c.DType == ccl.Float32 {
		return runTyped[float32](c)
	}
	return runTyped[int64](c)
}

func runTyped[T ccl.Element](c *call) error {
	group, err := dist.Default()
	if err != nil {
		return err
	}
	n := c.Bytes / c.DType.Size()
	switch x := make([]T, n); c.Collective {
	case ccl.CollAllReduce:
		var op ccl.Op
		if err := op.UnmarshalText([]byte(c.Op)); err != nil {
			return err
		}
		err = dist.AllReduce(x, op)
	case ccl.CollBroadcast:
		err = dist.Broadcast(x, 0)
	case ccl.CollAllGather:
		counts := make([]int, c.Ranks)
		for i := range counts {
			counts[i] = n
		}
		err = dist.AllGatherV(make([]T, n*c.Ranks), x, counts)
	default:
		return errors.New("the test does not know how to make this call")
	}
	if c.Refused != "" {
		if !errors.Is(err, ccl.ErrNotImplemented) || !strings.Contains(err.Error(), c.Refused) {
			return fmt.Errorf("the call returned %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	ran := group.Communicator().LastChoice()
	if ran.Entry != c.Entry || ran.Algorithm.Name != c.Module || ran.Kernel.Doc != c.Kernel || ran.Why != c.ChosenBy {
		return fmt.Errorf("it was run by %s (%s: %s), %s", ran.Entry, ran.Algorithm.Name, ran.Kernel.Doc, ran.Why)
	}
	return nil
}
