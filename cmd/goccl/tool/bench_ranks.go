package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/goccl/goccl/cmd/goccl/internal/doctor"
	"github.com/goccl/goccl/cmd/goccl/internal/measure"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/internal/launchenv"
	"github.com/goccl/goccl/internal/launcher"
	"github.com/goccl/goccl/transport/shm"
)

// ranks hosts the ranks of `goccl bench`: goroutines of this process, or processes. The processes
// are those of the launcher that started this one, or of a job for each case.
type ranks struct {
	launched *measure.LaunchedRanks // nil: no launcher has started this process
	stderr   io.Writer
}

// measure measures a case on ranks of the transport that the setup or its configuration asks for. A
// case that the setup cannot measure has a row that says why.
func (r *ranks) measure(ctx context.Context, s *measure.Setup, c measure.Case) (measure.Result, error) {
	if err := s.Possible(c); err != nil {
		return s.Unmeasured(c, measure.Row{Refused: err.Error()}), nil
	}
	if r.launched != nil {
		return r.launched.Measure(ctx, s, c)
	}
	settings, err := s.Resolve(c.Ranks)
	if err != nil || settings.Transport() != shm.Name {
		return s.Measure(ctx, c)
	}
	return measureOnProcesses(ctx, measure.Measurement{Setup: s, Case: c}, r.stderr)
}

// measureOnProcesses measures a case on a job of `goccl bench --serve`, whose rank 0 returns the
// result. If a rank fails, the error is the launcher's, which names the rank.
func measureOnProcesses(ctx context.Context, what measure.Measurement, stderr io.Writer) (r measure.Result, err error) {
	program, err := os.Executable()
	if err != nil {
		return r, err
	}
	text, err := json.Marshal(what)
	if err != nil {
		return r, err
	}

	job := launcher.Spec{
		Ranks: what.Case.Ranks, Program: program, Args: []string{"goccl", "bench", "--serve", string(text)}, Environment: os.Environ(),
		Stdout: io.Discard, Stderr: stderr, NoPrefix: true, Memory: memory,
	}
	outcome, err := job.Run(ctx)
	if err != nil {
		return r, err
	}
	if len(outcome.Ranks[0].Value) == 0 {
		return r, errors.New("the ranks have ended without a result")
	}
	return r, json.Unmarshal(outcome.Ranks[0].Value, &r)
}

// serve measures as a rank of measureOnProcesses.
func (c *benchCommand) serve() error {
	var what measure.Measurement
	if err := json.Unmarshal([]byte(c.Serve), &what); err != nil {
		return err
	}

	return unwrapped(dist.Spawn(func(ctx context.Context, rank int) error {
		if _, err := loadConfigOf(what.Setup); err != nil {
			return err
		}

		result, err := what.Setup.MeasureAsRank(ctx, what.Case)
		if err != nil || rank > 0 {
			return err
		}
		text, err := json.Marshal(result)
		if err != nil {
			return err
		}
		return launchenv.SendValue(os.Getenv, text)
	}))
}

// loadConfigOf loads the configuration of a setup, and describes it.
func loadConfigOf(s *measure.Setup) (found measure.Config, err error) {
	if s.Config, found, err = loadConfig(s.File); err == nil {
		err = s.Vary()
	}
	return found, err
}

// measureLaunched measures as a rank of the launcher that started this process: rank 0 runs lead,
// and the others take part in what it measures.
func measureLaunched(lead func(*ranks) error) error {
	return unwrapped(dist.Spawn(func(ctx context.Context, rank int) error {
		if rank > 0 {
			return measure.Serve(ctx, func(s *measure.Setup) error {
				_, err := loadConfigOf(s)
				return err
			})
		}
		all := &measure.LaunchedRanks{}
		err := lead(&ranks{launched: all})
		return errors.Join(err, all.Dismiss())
	}))
}

// unwrapped returns the error of the only rank that dist.Spawn has run here.
func unwrapped(err error) error {
	if failed, ok := errors.AsType[*dist.RankError](err); ok {
		return failed.Err
	}
	return err
}

// launchedRanks returns the number of ranks of the launcher, 0 without one, and checks that the
// flags ask for no others.
func (c *benchCommand) launchedRanks() (int, error) {
	if !dist.IsLaunched() {
		return 0, nil
	}
	_, n := doctor.Launcher(os.Getenv)
	if len(c.Ranks) > 0 && !slices.Equal(c.Ranks, []int{n}) {
		return n, fmt.Errorf("a launcher has started %d ranks, and --ranks asks for others: omit --ranks, or start goccl bench without the launcher, with --transport shm", n)
	}
	return n, nil
}
