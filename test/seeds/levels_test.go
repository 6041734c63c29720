//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/underseeds"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// onNodes is goroutine ranks that stand in for those of several nodes.
type onNodes struct {
	nodes  []int // by rank
	mu     interleave.Mutex
	levels []transport.Endpoint
}

// onNode is the endpoint of one of them.
type onNode struct {
	transport.Endpoint
	all *onNodes
}

func (n onNode) Nodes() []int         { return n.all.nodes }
func (n onNode) Host(int) string      { return "" }
func (n onNode) Culprit(rank int) int { return rank }

func (n onNode) Level(ctx context.Context, members []int) (transport.Endpoint, error) {
	number := uint64(1) << 62 // of a node; no call makes that many
	if n.all.nodes[members[0]] != n.all.nodes[members[len(members)-1]] {
		number++ // of leaders
	}
	level, err := n.Group(ctx, number, members)
	if err == nil {
		n.all.mu.Lock()
		defer n.all.mu.Unlock()
		n.all.levels = append(n.all.levels, level)
	}
	return level, err
}

func (n onNode) Group(ctx context.Context, number uint64, members []int) (transport.Endpoint, error) {
	return n.Endpoint.(transport.Groups).Group(ctx, number, members)
}

func (n onNode) Fail(f *transport.Failure) *transport.Failure {
	f = n.Endpoint.Fail(f)
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	for _, level := range n.all.levels {
		level.Fail(&transport.Failure{Kind: transport.FailureAborted, By: level.Rank(), Text: "the group has failed"})
	}
	return f
}

// shortPieces lets an all-reduce of 32 int32 pass through the levels in two pieces.
const shortPieces = `version: 1
algorithms: {direct: {module: direct}, hierarchical: {module: hierarchical, params: {chunk: 64}}}
rules: [{nodes: "2-", algorithm: hierarchical}, {algorithm: direct}]
`

// levelCalls is the number of calls of a job on two levels.
const levelCalls = 3

// All-reduces in pieces are right in many orders, and end on all ranks when one gives up.
func TestLevels(t *testing.T) {
	file, err := config.Parse("ccl.yaml", []byte(shortPieces))
	require.NoError(t, err)
	require.NoError(t, underseeds.Find(t, true, func(seed uint64) error {
		r := rand.New(rand.NewPCG(seed, 0))
		nodes := [][]int{{0, 0, 1}, {0, 1, 1}, {0, 0, 1, 1}, {0, 1, 1, 2, 2, 2}}[r.IntN(4)]
		settings, err := file.Resolve(config.Request{Ranks: len(nodes)})
		if err != nil {
			return err
		}

		quitter, last := r.IntN(len(nodes)), r.IntN(2*levelCalls) // it makes so many calls
		elements, all, eps := 1+r.IntN(100), &onNodes{nodes: nodes}, local.New(len(nodes))
		errs := make([]error, len(nodes))
		var ranks interleave.WaitGroup
		for rank := range nodes {
			ranks.Go(func() {
				underseeds.Label(rank)
				c, err := ccl.New(context.Background(), onNode{eps[rank], all}, ccl.WithSelector(settings))
				if errs[rank] = err; err != nil {
					return
				}
				errs[rank] = errors.Join(makeLevelCalls(c, elements, rank == quitter, last), c.Close())
			})
		}

		ranks.Wait()
		for _, err := range errs {
			aborted, is := errors.AsType[*transport.AbortedError](err)
			if err != nil && !(is && last < levelCalls && aborted.By == quitter) {
				return err
			}
		}
		return nil
	}))
}

// makeLevelCalls makes all-reduces on a rank, and checks their results. A quitter aborts the group
// after the last one.
func makeLevelCalls(c *ccl.Communicator, elements int, isQuitter bool, last int) error {
	for i := range levelCalls {
		if isQuitter && i == last {
			c.Abort(errors.New("no more"))
			return nil
		}
		x, y := make([]int32, elements), make([]int32, elements)
		for at := range x {
			x[at] = int32(c.Rank() + i*at)
		}
		if i == 0 {
			y = x
		}
		if err := ccl.AllReduce(context.Background(), c, x, y, ccl.Sum); err != nil {
			return err
		}

		n := c.Size()
		for at, got := range y {
			if want := int32(n*i*at + n*(n-1)/2); got != want {
				c.Abort(errors.New("wrong"))
				return fmt.Errorf("rank %d: %d of %d: %d instead of %d", c.Rank(), at, elements, got, want)
			}
		}
	}
	return nil
}
