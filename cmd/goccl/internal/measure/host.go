package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

// Measure measures one case on goroutines.
//
// Entries that cannot do it get a Row with the reason; so do entries that the configuration does
// not have, see Check.
func (s *Setup) Measure(ctx context.Context, c Case) (Result, error) {
	r, err := s.host(c, func(run func(context.Context) error) error {
		return dist.Spawn(func(ctx context.Context, _ int) error { return run(ctx) }, dist.WithRanks(c.Ranks), dist.WithSpawnContext(ctx))
	})
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	return r, err
}

// MeasureAsRank is Measure on one rank of a job that a launcher started. All ranks call it, and
// rank 0 gets the result. If the context has ended, the result is that of the calls before.
func (s *Setup) MeasureAsRank(ctx context.Context, c Case) (Result, error) {
	return s.host(c, func(run func(context.Context) error) error { return run(ctx) })
}

// host measures a case. on calls its argument as each of the ranks of this process.
func (s *Setup) host(c Case, on func(run func(context.Context) error) error) (Result, error) {
	settings, err := s.Resolve(c.Ranks)
	if err != nil {
		return Result{}, err
	}
	entries, err := s.choose(settings, c)
	if err != nil {
		return Result{}, err
	}
	result := s.unmeasured(settings, c, entries)
	if !slices.ContainsFunc(entries, func(e chosen) bool { return e.refused == "" }) {
		return result, nil
	}

	run := runOf[c.dtype()]
	if IsWorkload(c.Collective) {
		run = runAs(floats[float32](1<<24), addWorkload)
	}
	runtime.GC() // so that garbage of other cases is not collected during this one
	if err := on(func(ctx context.Context) error { return run(ctx, s, c, entries, &result) }); err != nil {
		return Result{}, fmt.Errorf("%s of %v: %w", c.Title(), ccl.ByteSize(c.Bytes), err)
	}
	return result, nil
}

// unmeasured returns the result of a case with rows that have no numbers yet.
func (s *Setup) unmeasured(settings *config.Settings, c Case, entries []chosen) Result {
	r := Result{Case: c, Topology: settings.Topology().Kind().String(), Config: s.Config.File()}
	if s.Grid != nil {
		r.Topology = s.Grid.String()
	}
	for _, e := range entries {
		r.Rows = append(r.Rows, e.row())
	}
	return r
}

// runRank is one rank's part in a measurement, in a group of its own. Rank 0 sets the result.
type runRank func(ctx context.Context, s *Setup, c Case, entries []chosen, result *Result) error

// runAs returns the part for one element type. add adds the subjects.
func runAs[T ccl.Element](e elements[T], add func(*bench[T], []chosen) error) runRank {
	return func(ctx context.Context, s *Setup, c Case, entries []chosen, result *Result) error {
		if err := dist.InitProcessGroup("ccl", dist.WithConfig(s.Config), dist.WithAlgorithm(s.algorithm()), dist.WithTransport(s.Transport)); err != nil {
			return err
		}
		group, err := dist.Default()
		if err != nil {
			return err
		}

		b, err := newBench(c, s.Budget, e, group.Communicator(), func(b *bench[T]) error { return add(b, entries) })
		if err != nil {
			return err
		}
		if err := b.work(ctx); err != nil {
			return err
		}

		if b.rank == 0 {
			result.Transport, result.Rows, result.OtherLoad = group.Communicator().Transport(), b.rows(entries), b.otherLoad()
		}
		return errors.Join(b.close(), dist.DestroyProcessGroup())
	}
}
