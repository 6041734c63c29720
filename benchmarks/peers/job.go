package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// job is the commands that start the ranks of a program: one launcher, or every rank by
// itself.
type job []child

// output runs all commands at once until they end, limit is over or ctx ends, and
// returns the output of the first. If one fails, the others are ended, and
// its error is the job's.
func (j job) output(ctx context.Context, limit, grace time.Duration) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var first string
	var all sync.WaitGroup
	for i, c := range j {
		all.Go(func() {
			text, err := c.output(ctx, limit, grace)
			if i == 0 {
				first = text
			}
			if err != nil && len(j) > 1 {
				err = fmt.Errorf("rank %d: %w", i, err)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return first, context.Cause(ctx)
}

// String is the command lines.
func (j job) String() string {
	if len(j) == 1 {
		return j[0].String()
	}
	return fmt.Sprintf("%s, and %d more like it", j[0], len(j)-1)
}
