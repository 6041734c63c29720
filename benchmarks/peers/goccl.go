package main

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	_ "github.com/goccl/goccl/algorithms" // what the default configuration chooses from
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/local"
)

// How many rounds are made of a size; the programs of the peers have the same.
const (
	warmUp   = 3 // not counted
	minCalls = 5
	maxCalls = 20000
)

var ours = contestant{"goccl", "default"}

// measureOurs times goccl as the programs of the peers time theirs, on goroutine
// ranks of this process and by the built-in configuration.
func measureOurs(ctx context.Context, ranks int, o options) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	defer debug.FreeOSMemory() // what is still to be done for the vectors is done before the next one's turn
	var rows []row
	failed := make([]error, ranks)
	var all sync.WaitGroup
	for rank, endpoint := range local.New(ranks) {
		all.Go(func() {
			measured, err := measureRank(ctx, endpoint, o)
			if rank == 0 {
				rows = measured // all ranks have the same
			}
			failed[rank] = err
		})
	}
	all.Wait()
	return rows, errors.Join(failed...)
}

func measureRank(ctx context.Context, endpoint transport.Endpoint, o options) (rows []row, err error) {
	c, err := ccl.New(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, bytes := range o.sizes {
		r, err := measureSize(ctx, c, bytes, o.budget)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func measureSize(ctx context.Context, c *ccl.Communicator, bytes int, budget time.Duration) (row, error) {
	v := vector{c, make([]float32, bytes/4)}
	calls, err := v.callsWithin(ctx, budget)
	if err != nil {
		return row{}, err
	}
	took := make([]time.Duration, calls)
	wrong := []int64{0}
	for i := range took {
		if took[i], err = v.round(ctx, i); err != nil {
			return row{}, err
		}
		wrong[0] += v.wrong(i)
	}
	err = errors.Join(ccl.AllReduce(ctx, c, took, took, ccl.Max), ccl.AllReduce(ctx, c, wrong, wrong, ccl.Sum))
	slices.Sort(took)
	us := func(i int) float64 { return float64(took[i].Nanoseconds()) / 1e3 }
	return row{
		contestant: ours, ranks: c.Size(), bytes: bytes, calls: int(calls),
		p50: us(len(took) / 2), p99: us(len(took) * 99 / 100), least: us(0), errors: int(wrong[0]),
	}, err
}

// A vector is the input and output of one rank.
type vector struct {
	c *ccl.Communicator
	x []float32
}

// round returns how long the operation took on this rank.
func (v vector) round(ctx context.Context, i int) (time.Duration, error) {
	for j := range v.x {
		v.x[j] = float32(v.c.Rank() + (i+j)&7) // says whose it is, where, and in which round
	}
	err := errors.Join(v.c.Barrier(ctx), v.c.Barrier(ctx))
	start := time.Now()
	if len(v.x) == 0 {
		err = errors.Join(err, v.c.Barrier(ctx))
	} else {
		err = errors.Join(err, ccl.AllReduce(ctx, v.c, v.x, v.x, ccl.Sum))
	}
	took := time.Since(start)
	return took, errors.Join(err, v.c.Barrier(ctx))
}

// wrong counts the elements that are not the sum of all ranks' inputs.
func (v vector) wrong(i int) (n int64) {
	ranks := v.c.Size()
	for j, got := range v.x {
		if got != float32(ranks*(ranks-1)/2+ranks*((i+j)&7)) {
			n++
		}
	}
	return n
}

// callsWithin returns how many rounds fit into the budget, by the fastest of a few;
// all ranks get rank 0's answer.
func (v vector) callsWithin(ctx context.Context, budget time.Duration) (int64, error) {
	fastest := budget
	for i := range warmUp {
		start := time.Now()
		if _, err := v.round(ctx, i); err != nil {
			return 0, err
		}
		v.wrong(i)
		fastest = min(fastest, time.Since(start))
	}
	calls := []int64{int64(min(max(minCalls, budget/fastest), maxCalls))}
	err := ccl.Broadcast(ctx, v.c, calls, 0)
	return calls[0], err
}
