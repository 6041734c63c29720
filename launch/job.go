package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/launcher"
)

// Job is a program that runs as several ranks.
type Job struct {
	// Ranks is the number of processes, from 1 to 65536.
	Ranks int
	// Program is a file, or a name that is looked up in PATH; if it is empty, this program.
	Program string
	// Args are the program's arguments, without its name. If Args is nil and Program is empty,
	// they are those of this process.
	Args []string
	// Env is the environment of the ranks, in the form of os.Environ; if it is nil, that of this
	// process. Of several entries for a variable the last counts, as in os/exec. Variables of other
	// launchers are removed, and those of the rank are added.
	Env []string
	// Stdout and Stderr get the lines that the ranks write, each behind the rank: "[2] epoch 1". If
	// one is nil, the lines are dropped. Run waits until they have all lines.
	Stdout, Stderr io.Writer
	// Pin determines whether every rank runs on its own cores.
	Pin Pinning
	// Grace is the time between SIGTERM and SIGKILL when the job is ended; 0 means 5 s.
	Grace time.Duration
	// MaxRestarts is how often the job starts anew after a failure, with all ranks, which know the
	// number by GOCCL_RESTART. Before each restart Stderr gets the error. Failures that would only
	// repeat end the job: see goccl help run.
	MaxRestarts int
	// Metrics, unless nil, shows what the ranks of this job count, which they do for it.
	Metrics *Metrics
	// Warn, unless nil, is called with what the user should know while the job runs, such as a rank
	// that the others wait for, and with that rank, or -1. It is called from other goroutines.
	Warn func(rank int, text string)
	// RestartWindow is the time without a failure after which failures are counted anew; 0: never.
	RestartWindow time.Duration
}

// Pinning determines whether every rank of a job runs on its own cores. Only Linux pins.
type Pinning int

const (
	// PinAuto pins the ranks if there are several, and enough cores that no other job holds, all
	// equally fast.
	PinAuto Pinning = iota
	// PinOn pins the ranks, or the job does not start.
	PinOn
	// PinOff lets the ranks share all cores.
	PinOff
)

const defaultGrace = 5 * time.Second

// Rank is how a rank ended.
type Rank struct {
	Rank int
	PID  int
	// ExitStatus is the status with which the process ended, or -1 if a signal ended it.
	ExitStatus int
	// Signal is the signal that ended the process, or nil.
	Signal os.Signal
	// Wall is the time from the start of the process to its end.
	Wall time.Duration
	// Transport is what connected the rank with the others when it joined them last, such as "shm"; ""
	// if it never joined.
	Transport string
	// Value is what the rank gave to Return, as JSON; nil if it returned nothing. Infinities and
	// NaN are strings, see Return.
	Value json.RawMessage
	// Err is nil if the process ended with status 0 and hides no failure, as a pipe of a shell can.
	// Otherwise it says how the process ended and, as far as that is known, why.
	Err error
}

// Run starts the job and returns when all of its processes have ended. The ranks are nil if the job
// could not start; otherwise there are Job.Ranks of them, whether the job failed or not, those of
// the last start. If ctx
// ends, the job ends, and the error wraps ctx's.
func (j *Job) Run(ctx context.Context) ([]Rank, error) {
	if err := mayStart(); err != nil {
		return nil, err
	}
	job, err := j.describe()
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("launch: nothing was started: %w", err)
	}

	restarts := launcher.Restarts{Max: j.MaxRestarts, Window: j.RestartWindow, Notice: func(failed launcher.Attempt, number int, pause time.Duration) {
		fmt.Fprintf(job.Stderr, "launch: %v\nlaunch: restart %d in %v\n", failed.Err, number, pause.Round(time.Millisecond))
	}}
	outcome, _, err := restarts.Run(ctx, job)
	ended, failed := errors.AsType[*launcher.EndedError](err)
	var ranks []Rank
	if outcome != nil {
		if j.Warn != nil && err == nil && outcome.Warning != "" {
			j.Warn(-1, outcome.Warning)
		}
		for i, r := range outcome.Ranks {
			ranks = append(ranks, describeRank(i, r, ended))
		}
	}

	switch {
	case failed:
		return ranks, &JobError{Rank: ended.First, Ranks: ranks, ended: ended, text: "launch: " + err.Error()}
	case err != nil:
		return ranks, fmt.Errorf("launch: %w", err)
	}
	return ranks, nil
}

// describe checks the job and returns it as the launcher wants it.
func (j *Job) describe() (*launcher.Spec, error) {
	job := &launcher.Spec{
		Ranks: j.Ranks, Environment: j.Env, Stdout: cmp.Or(j.Stdout, io.Discard), Stderr: cmp.Or(j.Stderr, io.Discard),
		Grace: cmp.Or(j.Grace, defaultGrace), Memory: memory,
		Pin: map[Pinning]launcher.Pinning{PinAuto: launcher.PinDefault, PinOn: launcher.PinOn, PinOff: launcher.PinOff}[j.Pin],
	}

	if j.Metrics != nil {
		job.Memory.Monitor = &j.Metrics.monitor
	}
	if j.Warn != nil {
		job.Warn = func(w launcher.Warning) { j.Warn(w.Rank, w.Text) }
	}

	args := j.Args
	var err error
	switch {
	case j.Ranks < 1:
		return nil, fmt.Errorf("Job.Ranks is %d: at least 1 rank is needed", j.Ranks)
	case j.Ranks > launcher.MaxRanks:
		return nil, fmt.Errorf("Job.Ranks is %d: at most %d ranks are possible", j.Ranks, launcher.MaxRanks)
	case j.Pin < PinAuto || j.Pin > PinOff:
		return nil, fmt.Errorf("Job.Pin is %d: want PinAuto, PinOn or PinOff", j.Pin)
	// Restarts.
	case j.MaxRestarts < 0 || j.RestartWindow < 0:
		return nil, fmt.Errorf("Job.MaxRestarts is %d, and RestartWindow %v: want 0 or more", j.MaxRestarts, j.RestartWindow)
	case j.Grace < 0:
		return nil, fmt.Errorf("Job.Grace is %v: want 0 or more", j.Grace)
	// Without a program, this one is started again.
	case j.Program == "" && args == nil && flag.Lookup("test.v") != nil:
		return nil, errors.New("this program is a test binary, and each rank would run all tests: " +
			"let TestMain do a rank's work if launch.IsRank returns true, and set Job.Args to []string{}, " +
			"or set Job.Args to []string{\"-test.run=^TestName$\"}, and let that test ask launch.IsRank")
	case j.Program == "":
		if args == nil {
			args = os.Args[1:]
		}
		job.Program, err = os.Executable()
		job.Args = append([]string{os.Args[0]}, args...)

	default:
		job.Program, err = launcher.Find(j.Program)
		job.Args = append([]string{j.Program}, args...)
	}
	if job.Environment == nil {
		job.Environment = os.Environ()
	}
	for _, v := range job.Environment { // where ranks write their flight recorders; those of dead ranks come from here
		if dir, ok := strings.CutPrefix(v, "GOCCL_FLIGHT="); ok {
			job.Flight = dir
		}
	}
	return job, err
}

// describeRank returns how a rank ended. ended is the job's error, or nil.
func describeRank(i int, r launcher.Rank, ended *launcher.EndedError) Rank {
	d := Rank{Rank: i, PID: r.PID, ExitStatus: r.Exit, Wall: r.Wall, Transport: r.Transport, Value: r.Value}
	if r.Signal != 0 {
		d.ExitStatus, d.Signal = -1, r.Signal
	}

	if r.Failed() {
		text := r.How()
		if ended != nil {
			if cause := ended.CauseOf(i); cause != "" {
				text += ": " + cause
			}
		}
		d.Err = errors.New(text)
	}
	return d
}
