package ddp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/goccl/goccl/dist"
)

// Loader loads batches of this rank's samples, some of them before they are needed.
type Loader[B any] struct {
	Sampler Sampler
	Batch   int // samples of this rank in a step; with Sampler.Shards, of each shard
	Ahead   int // batches that are loaded before they are needed; 0: one

	// Load returns the batch of some samples. It is called by one goroutine at a time, in order,
	// while the program works with batches that were loaded before.
	Load func(ctx context.Context, indices []int) (B, error)
}

// Check returns nil, or a *ccl.InvalidArgumentError that says which field of the Loader or its
// Sampler is wrong.
func (l *Loader[B]) Check() error {
	switch err := l.Sampler.Check(); {
	case err != nil:
		return err
	case l.Batch < 1:
		return invalid("ddp.Loader", "Batch is %d, and must be at least 1", l.Batch)
	case l.Load == nil:
		return invalid("ddp.Loader", "Load is nil, and must be a function that returns a batch")
	}
	return nil
}

// Steps returns the number of this rank's batches in an epoch; 0 if Check returns an error. The
// last one may be shorter.
//
// With Sampler.Shards each step has a batch for each shard of this rank. With Sampler.Uneven ranks
// may have different numbers: a loop that makes collective calls needs Join then.
func (l *Loader[B]) Steps() int {
	if l.Check() != nil {
		return 0
	}
	n := l.Sampler.Len() / l.shards()
	return n/l.Batch + min(n%l.Batch, 1)
}

// shards returns how many batches a step has.
func (l *Loader[B]) shards() int {
	s, _ := l.Sampler.resolve()
	low, high, _ := s.share()
	return high - low
}

// loaded is what Load has returned.
type loaded[B any] struct {
	batch B
	err   error
}

// Epoch returns the batches of an epoch from a step on: 0 for all; the number of steps made, to
// resume.
//
// With Sampler.Shards there is one for each shard that this rank hosts, in their order, and then
// those of the next step.
//
// It ends with the first error: that of Check, of Load or of ctx. If Load panics, or ends its
// goroutine, the error is *LoadPanicError.
//
// When the loop over it ends early, the context of Load ends, and the loop waits until Load has
// returned.
func (l *Loader[B]) Epoch(ctx context.Context, epoch, from int) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var none B
		err := l.Check()
		if err == nil && ctx == nil {
			err = noContext("ddp.Loader")
		}
		if err == nil && from < 0 {
			err = invalid("ddp.Loader", "the first step is %d, and must be at least 0", from)
		}

		if err != nil {
			yield(none, err)
			return
		}

		from = min(from, l.Steps())
		ctx, cancel := context.WithCancel(ctx)
		ahead := min(max(l.Ahead, 1), max((l.Steps()-from)*l.shards(), 1))
		batches := make(chan loaded[B], ahead-1) // one more waits to be sent
		defer func() {
			cancel()
			for range batches { // until the goroutine has ended
			}
		}()
		go l.loadBatches(ctx, epoch, from, batches)

		for b := range batches {
			if !yield(b.batch, b.err) || b.err != nil {
				return
			}
		}
		if err := context.Cause(ctx); err != nil {
			yield(none, err)
		}
	}
}

// loadBatches sends the batches of an epoch from a step on, until one has an error or ctx ends.
func (l *Loader[B]) loadBatches(ctx context.Context, epoch, from int, batches chan<- loaded[B]) {
	defer close(batches)
	send := func(next loaded[B]) (isSent bool) {
		select {
		case batches <- next:
			return true
		case <-ctx.Done():
			return false
		}
	}

	hasReturned := false
	defer func() {
		if v := recover(); v != nil {
			send(loaded[B]{err: &LoadPanicError{Value: v, Line: panicLine(), Stack: debug.Stack()}})
		} else if !hasReturned {
			send(loaded[B]{err: &LoadPanicError{Value: dist.ErrGoexit, Stack: debug.Stack()}})
		}
	}()

	// Those of each shard lie behind each other.
	indices, shards := l.Sampler.Indices(epoch), l.shards()
	each := len(indices) / shards

	for i := from * shards; i < l.Steps()*shards; i++ {
		rest := indices[i%shards*each:][i/shards*l.Batch : each]
		next := loaded[B]{err: context.Cause(ctx)}
		if next.err == nil {
			next.batch, next.err = l.Load(ctx, rest[:min(l.Batch, len(rest))])
		}
		if !send(next) || next.err != nil {
			break
		}
	}
	hasReturned = true
}

// LoadPanicError says that Loader.Load panicked, or ended its goroutine by runtime.Goexit, as a
// test's FailNow does.
type LoadPanicError struct {
	Value any    // of the panic; dist.ErrGoexit if there was none
	Line  string // of the program, such as "train/data.go:42"; "" if it is unknown
	Stack []byte
}

func (e *LoadPanicError) Error() string {
	switch {
	case errors.Is(e.Unwrap(), dist.ErrGoexit):
		return "ddp: Loader.Load ended its goroutine by runtime.Goexit and did not return"
	case e.Line == "":
		return fmt.Sprintf("ddp: Loader.Load panicked: %v", e.Value)
	}
	return fmt.Sprintf("ddp: Loader.Load panicked at %s: %v", e.Line, e.Value)
}

// Unwrap returns the value of the panic if it is an error.
func (e *LoadPanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// panicLine returns the line that panicked. A deferred function calls it.
func panicLine() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	hasPanicked := false
	for f, more := frames.Next(); more; f, more = frames.Next() {
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		if hasPanicked && !inRuntime {
			directory, file := filepath.Split(f.File)
			return fmt.Sprintf("%s/%s:%d", filepath.Base(directory), file, f.Line)
		}
		hasPanicked = hasPanicked || inRuntime
	}
	return ""
}
