package ddp_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/dist"
)

var (
	plans    = flag.Int("plans", 28, "number of random plans on goroutines; seed=N again: -seed N -plans 1 -count 100")
	jobPlans = flag.Int("process-plans", 15, "number of random plans on processes; seed N again: -seed N -process-plans 1")
	shrinks  = flag.Bool("shrink", false, "of a plan that fails on goroutines, look for a smaller one that does")
	planSeed = flag.Uint64("seed", 1, "the first random plan")
)

// drawPlan draws the plan of a seed for 1 to 4 ranks.
func drawPlan(seed uint64) *Plan { return NewPlan(seed, int(1+seed/7%4)) }

// endsWorker reports whether a worker ends while others train.
func endsWorker(p *Plan) bool {
	phases := p.Trainings[len(p.Trainings)-1].Phases
	return slices.ContainsFunc(phases[len(phases)-1].Steps, func(s *Step) bool {
		return s.Fault != nil && (s.Fault.Kind == FaultFails || s.Fault.Kind == FaultReturns)
	})
}

// runOnRank runs a plan on a rank that has started, and returns how it deviates from the definition.
func runOnRank(p *Plan) (fails bool, deviation error) {
	group, err := dist.Default()
	if err != nil {
		return false, err
	}
	return runPlan(p, group)
}

// initDirect connects a rank. Means are those of the algorithm direct.
func initDirect() error {
	const text = "version: 1\nalgorithms: {direct: {module: direct}, pairwise: {module: pairwise}}\nrules: [{algorithm: direct}]\n"
	cfg, err := config.Parse("ccl.yaml", []byte(text))
	if err != nil {
		return err
	}
	return dist.InitProcessGroup("ccl", dist.WithConfig(cfg), dist.WithTimeout(20*time.Second))
}

// runOnGoroutines runs a plan on goroutines, and returns how ranks deviate from its definition.
func runOnGoroutines(p *Plan) error {
	deviations := make([]error, p.Ranks)
	err := dist.Spawn(func(_ context.Context, rank int) error {
		if err := initDirect(); err != nil {
			return err
		}
		fails, err := runOnRank(p)
		switch {
		case err != nil:
			deviations[rank] = fmt.Errorf("rank %d: %w", rank, err)
			return err
		case fails:
			return errPlanned
		case endsWorker(p):
			return nil
		}
		return dist.DestroyProcessGroup()
	}, dist.WithRanks(p.Ranks))
	if deviation := errors.Join(deviations...); deviation != nil || endsWorker(p) {
		return deviation
	}
	return err
}

// Random trainings on goroutines follow their definition.
func TestRandomPlans(t *testing.T) {
	for i := range uint64(*plans) {
		seed := *planSeed + i
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			p := drawPlan(seed)
			if err := runOnGoroutines(p); err != nil {
				if *shrinks {
					p = shrink(p)
				}
				t.Errorf("%v\n%s", err, describe(p))
			}
		})
	}
}

// plansVariable has the first seed and the number of plans for a process.
const plansVariable = "TEST_DDP_PLANS"

// Random trainings on processes follow their definition.
func TestRandomPlansOnProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ranks are processes on Linux only")
	}
	for first, end := *planSeed, *planSeed+uint64(*jobPlans); first < end; {
		ranks, count := drawPlan(first).Ranks, uint64(1)
		for !endsWorker(drawPlan(first+count-1)) && first+count < end && drawPlan(first+count).Ranks == ranks {
			count++ // in the same processes
		}
		t.Run(fmt.Sprintf("seeds=%d-%d", first, first+count-1), func(t *testing.T) {
			job := fmt.Sprintf("%s=%d %d", plansVariable, first, count)
			for rank, o := range startProcesses(t, "plans", ranks, job) {
				if o.Err != "" {
					t.Errorf("rank %d: %s", rank, o.Err)
				}
			}
		})
		first += count
	}
}

// runPlans runs the plans of this process.
func runPlans(o *outcome) error {
	var first, count uint64
	if _, err := fmt.Sscan(os.Getenv(plansVariable), &first, &count); err != nil {
		return err
	}
	if err := initDirect(); err != nil {
		return err
	}
	for seed := first; seed < first+count; seed++ {
		p := drawPlan(seed)
		fails, err := runOnRank(p)
		switch {
		case err != nil:
			o.Err = fmt.Sprintf("seed %d: %v", seed, err)
			return err
		case fails:
			return errPlanned
		case endsWorker(p):
			return nil
		}
	}
	return dist.DestroyProcessGroup()
}
