//go:build interleave

package seeds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/interleave"
)

// runCheckpoints saves a model twice while ranks go on to change it, and loads what was saved last.
// A rank may be cancelled at any step, or soon after a rank has written or read a state: then no
// other one has saved or loaded more than it.
func runCheckpoints(t *testing.T, seed uint64, o interleave.Options) (interleave.Result, error) {
	s := newScene(seed, 2, 3)
	by, moment, isCancelled, isBeside := s.IntN(s.ranks), s.IntN(2500), s.IntN(3) > 0, s.IntN(2) == 0
	states := s.IntN(5) // so many are written or read before; 0: the moment counts from the beginning
	if states > 0 {
		moment /= 16
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("goccl-seeds-%010d-%020d.safetensors", os.Getpid(), seed))
	defer func() { _ = os.Remove(path) }()
	done := make([]int, s.ranks) // calls that have succeeded
	o.Patience = patience
	afterState.count = 0
	r := interleave.Run(t, o, func() {
		_ = dist.Spawn(func(_ context.Context, rank int) error {
			interleave.SetLabel(label(rank))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			m, weights, err := newSaved()
			if err != nil {
				s.alarmf("rank %d: %v", rank, err)
				return err
			}
			if rank == by && isCancelled {
				afterState.count, afterState.run = states, func() { interleave.At(int(interleave.Moment())+moment, cancel) }
				if states == 0 {
					afterState.run()
				}
			}

			for _, call := range saved(m, weights, path, isBeside) {
				if err = call(ctx); err != nil {
					break
				}
				done[rank]++
			}
			if err != nil && !isCancelled {
				s.alarmf("rank %d: %v", rank, err)
			}
			return errors.Join(err, m.Close(), dist.DestroyProcessGroup())
		}, dist.WithRanks(s.ranks))
	})
	if r.Finding == nil && slices.Min(done) != slices.Max(done) {
		s.alarmf("torn: of the calls of ranks so many have succeeded: %d", done)
	}
	return r, s.wrap(errors.Join(s.alarms...), "cancelled %v, rank %d at %d, beside %v", isCancelled, by, moment, isBeside)
}

// savedState is a state that knows when it is written and read.
type savedState int

// afterState is what happens after so many states were written or read.
var afterState struct {
	count int
	run   func()
}

//go:norace
func noteState() {
	if afterState.count--; afterState.count == 0 {
		afterState.run()
	}
}

func (s savedState) MarshalText() ([]byte, error) {
	noteState()
	return strconv.AppendInt(nil, int64(s), 10), nil
}

func (s *savedState) UnmarshalText(text []byte) error {
	noteState()
	n, err := strconv.Atoi(string(text))
	*s = savedState(n)
	return err
}

// newSaved returns a model of one parameter.
func newSaved() (*ddp.Reducer, []float32, error) {
	if err := dist.InitProcessGroup("ccl", dist.WithConfig(spawnConfig), dist.WithTimeout(spawnTimeout)); err != nil {
		return nil, nil, err
	}
	all, err := dist.Default()
	if err != nil {
		return nil, nil, err
	}
	weights := []float32{1, 2, 3}
	m, err := ddp.New(context.Background(), all, []ddp.Parameter{ddp.Param("w", weights, nil)}, ddp.Options{})
	return m, weights, err
}

// saved returns the calls of a rank, two that save and one that loads. Files may be written beside
// what follows.
func saved(m *ddp.Reducer, weights []float32, path string, isBeside bool) (calls []func(ctx context.Context) error) {
	for state := range 2 {
		calls = append(calls, func(ctx context.Context) (err error) {
			if isBeside {
				_, err = m.SaveAsync(ctx, path, savedState(state))
			} else {
				err = m.Save(ctx, path, savedState(state))
			}
			weights[0]++
			return err
		})
	}
	return append(calls, func(ctx context.Context) error {
		state := savedState(-1)
		if err := m.Load(ctx, path, &state); err != nil {
			return err
		}
		if state != 1 || weights[0] != 2 {
			return fmt.Errorf("loaded: the state is %d, and the weights are %v", state, weights)
		}
		return nil
	})
}
