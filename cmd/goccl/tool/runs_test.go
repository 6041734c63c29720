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

// explain's answers are true: every rank makes every call of the table, and the
// communicator reports the same kernel and reason. Calls that are shown as refused are
// refused with the same text.
func TestExplainedIsWhatRuns(t *testing.T) {
	alone(t)
	writeFile(t, "own.yaml", ownRules)
	r := reported(t, "explain", "--config", "own.yaml", "--ranks", "2,3,5",
		"--bytes", "8,1KiB,4KiB,16KiB,64KiB", "--dtype", "float32,int64", "--op", "sum,max,avg,bor")
	entries, refused := map[string]int{}, 0
	for _, w := range r.Worlds {
		err := dist.Spawn(func(context.Context, int) error {
			if err := dist.InitProcessGroup("ccl", dist.WithConfigFile("own.yaml")); err != nil {
				return err
			}
			group, err := dist.Default()
			if err != nil {
				return err
			}
			for _, c := range w.Calls {
				if err := c.run(group.Communicator()); err != nil {
					return fmt.Errorf("%+v: %w", *c, err)
				}
			}
			return dist.DestroyProcessGroup()
		}, dist.WithRanks(w.Ranks))
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

// run makes the call, and compares it with its explanation.
func (c *call) run(comm *ccl.Communicator) error {
	if c.DType == ccl.Float32 {
		return runTyped[float32](c, comm)
	}
	return runTyped[int64](c, comm)
}

func runTyped[T ccl.Element](c *call, comm *ccl.Communicator) error {
	err := called[T](c, comm)
	if c.Refused != "" {
		if !errors.Is(err, ccl.ErrNotImplemented) || !strings.Contains(err.Error(), c.Refused) {
			return fmt.Errorf("the call returned %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	ran := comm.LastChoice()
	if ran.Entry != c.Entry || ran.Algorithm.Name != c.Module || ran.Kernel.Doc != c.Kernel || ran.Why != c.ChosenBy {
		return fmt.Errorf("it was run by %s (%s: %s), %s", ran.Entry, ran.Algorithm.Name, ran.Kernel.Doc, ran.Why)
	}
	return nil
}

// called makes the call. Scattered inputs need not have whole blocks.
func called[T ccl.Element](c *call, comm *ccl.Communicator) error {
	var op ccl.Op
	if c.Op != "" {
		if err := op.UnmarshalText([]byte(c.Op)); err != nil {
			return err
		}
	}
	ctx, rank, ranks := context.Background(), comm.Rank(), comm.Size()
	n := c.Bytes / c.DType.Size()
	share := func(of int) int { return (n + ranks - 1 - of%ranks) / ranks } // the first are the longest
	var shares, turned []int
	for r := range ranks {
		shares, turned = append(shares, share(r)), append(turned, share(r+rank))
	}
	x, all := make([]T, n), make([]T, n*ranks)
	atRoot := func(s []T) []T {
		if rank > 0 {
			return nil
		}
		return s
	}
	switch c.Collective {
	case ccl.CollAllReduce:
		return ccl.AllReduce(ctx, comm, x, x, op)
	case ccl.CollReduce:
		return ccl.Reduce(ctx, comm, x, atRoot(x), op, 0)
	case ccl.CollReduceScatter:
		return ccl.ReduceScatterV(ctx, comm, x, make([]T, shares[rank]), op, shares)
	case ccl.CollAllGather:
		return ccl.AllGather(ctx, comm, x, all)
	case ccl.CollBroadcast:
		return ccl.Broadcast(ctx, comm, x, 0)
	case ccl.CollGather:
		return ccl.Gather(ctx, comm, x, atRoot(all), 0)
	case ccl.CollScatter:
		if rank > 0 {
			return ccl.ScatterV(ctx, comm, nil, nil, nil, make([]T, shares[rank]), 0)
		}
		return ccl.ScatterV(ctx, comm, x, shares, nil, make([]T, shares[rank]), 0)
	case ccl.CollAllToAll:
		return ccl.AllToAllV(ctx, comm, x, turned, nil, make([]T, n), turned, nil)
	case ccl.CollScan:
		return ccl.Scan(ctx, comm, x, x, op)
	case ccl.CollExScan:
		return ccl.ExScan(ctx, comm, x, x, op)
	}
	return errors.New("the test does not know how to make this call")
}
