package tool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/launcher"
)

// runCommand is `goccl run`.
type runCommand struct {
	Args     []string      `arg:"" optional:"" passthrough:"partial" name:"program" help:"The program and its arguments. Flags after its name are its own."`
	Ranks    *int          `short:"n" placeholder:"N" help:"Number of processes to start."`
	Pin      pinning       `help:"Pin each rank to its own cores, an equal part of those that this process may use and no other job of goccl run holds. It is the default if there are enough; with --pin, too few are an error. --pin=off pins no rank."`
	NoPrefix bool          `help:"Show lines without the rank that wrote them."`
	Quiet    bool          `short:"q" help:"Show the lines of rank 0 only."`
	Output   string        `short:"o" placeholder:"DIR" help:"Show no output; write it to new files DIR/rank-0.out, DIR/rank-0.err and so on."`
	Grace    time.Duration `default:"5s" placeholder:"5s" help:"Time between SIGTERM and SIGKILL."`
}

// pinning is the value of --pin: on, off, or a boolean; on without a value.
type pinning launcher.Pinning

// Decode implements kong.MapperValue.
func (p *pinning) Decode(ctx *kong.DecodeContext) error {
	*p = pinning(launcher.PinOn)
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	switch value := fmt.Sprint(ctx.Scan.Pop().Value); value {
	case "on", "true", "yes", "1":
		return nil
	case "off", "false", "no", "0":
		*p = pinning(launcher.PinOff)
		return nil
	default:
		return fmt.Errorf("want on or off, but got %q", value)
	}
}

// IsBool implements kong.BoolMapperValue: the value is optional.
func (*pinning) IsBool() bool { return true }

// Help returns the text of `goccl run --help` beside the flags.
func (c *runCommand) Help() string {
	return `Every process is one rank. Its environment has the rank and the number of ranks: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, and for this library GOCCL_SHM_NAME, GOCCL_SHM_SECRET, GOCCL_SHM_RANK, GOCCL_SHM_SIZE. Rank 0 has the standard input.

The first rank that fails ends the job: the others get SIGTERM and, after the grace period, SIGKILL. So does an interrupt; a second one kills at once. All processes in the ranks' process groups are ended. The error names the rank that made the others fail, or that they waited for.

The exit status is 0 if all ranks ended with 0, otherwise that of the rank to blame, or 128 plus the number of the signal that it, or the launcher, got. It is 127 if the program does not exist, 126 if it cannot be executed, 2 for invalid flags, and 1 if a process cannot be started.`
}

// Validate checks required arguments and combinations of flags.
func (c *runCommand) Validate() error {
	switch program := c.program(); {
	case c.Ranks == nil:
		return errors.New("-n is missing: give the number of ranks, as in goccl run -n 4 ./train")
	case *c.Ranks < 1 || *c.Ranks > config.MaxRanks:
		return fmt.Errorf("-n %d: from 1 to %d ranks are possible", *c.Ranks, config.MaxRanks)
	case len(program) == 0 || program[0] == "":
		return fmt.Errorf("the program is missing, as in goccl run -n %d ./train", *c.Ranks)
	case c.Output != "" && (c.Quiet || c.NoPrefix):
		return errors.New("--output writes files without prefixes: it excludes --quiet and --no-prefix")
	case c.Grace < 0:
		return fmt.Errorf("--grace %v: want 0 or more", c.Grace)
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
		if !signal.Ignored(s) { // by nohup, or by a shell for background jobs
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	job := launcher.Job{
		Ranks:       *c.Ranks,
		Program:     file,
		Args:        args,
		Grace:       c.Grace,
		Pin:         launcher.Pinning(c.Pin),
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
