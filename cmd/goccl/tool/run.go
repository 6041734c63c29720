package tool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cmd/goccl/internal/launcher"
)

// runCommand is `goccl run`.
type runCommand struct {
	Args     []string      `arg:"" optional:"" passthrough:"partial" name:"program" help:"The program and its arguments. Flags after its name are its own."`
	Ranks    *int          `short:"n" placeholder:"N" help:"How many processes to start."`
	Pin      bool          `help:"Keep each rank on cores of its own: its share of those that this process may use."`
	NoPrefix bool          `help:"Show lines as they are, without the rank that has written them."`
	Quiet    bool          `short:"q" help:"Show the lines of rank 0 only."`
	Output   string        `short:"o" placeholder:"DIR" help:"Show nothing, and write DIR/rank-0.out, DIR/rank-0.err and so on, which must not exist yet."`
	Grace    time.Duration `default:"5s" placeholder:"5s" help:"How long ranks that are asked to end may take before they are killed."`
}

// Help is what `goccl run --help` says besides the flags.
func (c *runCommand) Help() string {
	return `Every process is one rank. It finds its place in RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, and for this library in GOCCL_SHM_NAME, GOCCL_SHM_SECRET, GOCCL_SHM_RANK, GOCCL_SHM_SIZE. Rank 0 has the standard input.

The first rank that fails ends the job: the others get SIGTERM and, after the grace period, SIGKILL. So does an interrupt; a second one kills at once. Nothing that the ranks have started in their process groups is left behind. The error names the rank that made the others fail, or that they waited for.

The exit status is 0 if all ranks have ended with 0, and else that of the rank to blame, or 128 and the number of the signal that it, or the launcher, got. It is 127 if there is no such program, 126 if it cannot be executed, 2 for flags that make no sense, and 1 if a process cannot be started.`
}

// Validate looks at what has to be there, and at the flags that only make sense
// together.
func (c *runCommand) Validate() error {
	switch program := c.program(); {
	case c.Ranks == nil:
		return errors.New("-n is missing: say how many ranks to start, as in goccl run -n 4 ./train")
	case *c.Ranks < 1 || *c.Ranks > ccl.MaxRanks:
		return fmt.Errorf("-n %d: from 1 to %d ranks are possible", *c.Ranks, ccl.MaxRanks)
	case len(program) == 0 || program[0] == "":
		return fmt.Errorf("the program is missing: say what to start, as in goccl run -n %d ./train", *c.Ranks)
	case c.Output != "" && (c.Quiet || c.NoPrefix):
		return errors.New("--output shows nothing and writes files without prefixes: --quiet and --no-prefix do not go with it")
	case c.Grace < 0:
		return fmt.Errorf("--grace %v: want no time or some", c.Grace)
	}
	return nil
}

// program returns the program and its arguments.
func (c *runCommand) program() []string {
	if len(c.Args) > 0 && c.Args[0] == "--" {
		return c.Args[1:]
	}
	return c.Args
}

// Run starts the ranks, and returns when all have ended.
func (c *runCommand) Run(stdout io.Writer, stderr bars) error {
	args := c.program()
	file, err := launcher.Find(args[0])
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	for _, s := range launcher.Signals {
		if !signal.Ignored(s) { // by nohup, or by a shell that does not want to pass interrupts on
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	job := launcher.Job{
		Ranks:       *c.Ranks,
		Program:     file,
		Args:        args,
		Grace:       c.Grace,
		Pin:         c.Pin,
		Environment: os.Environ(),
		Stdin:       os.Stdin,
		Stdout:      stdout,
		Stderr:      stderr.Writer,
		NoPrefix:    c.NoPrefix,
		Quiet:       c.Quiet,
		Directory:   c.Output,
		Signals:     signals,
	}
	return job.Run()
}
