package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/internal/launcher"
)

// runCommand is `goccl run`.
type runCommand struct {
	Args       []string      `arg:"" optional:"" passthrough:"partial" name:"program" help:"The program and its arguments. Flags after its name are its own."`
	Ranks      *rankCount    `short:"n" aliases:"np,nproc-per-node,nproc_per_node" placeholder:"N" help:"Number of processes to start. -np is the same."`
	PerNode    *string       `short:"N" hidden:"" help:"Refused: it has different meanings elsewhere."`
	Export     *string       `short:"x" hidden:"" help:"Refused: mpirun's --env."`
	Timeout    *string       `name:"timeout" hidden:"" help:"Refused: calls have timeouts, jobs none."`
	Env        []string      `name:"env" sep:"none" placeholder:"NAME[=VALUE]" help:"Set a variable of all ranks, or keep one that ranks would not inherit, such as MASTER_PORT. May be repeated."`
	Pin        pinning       `help:"Pin each rank to its own cores, an equal part of those that this process may use and no other job of goccl run holds. It is the default if there are enough; with --pin, too few are an error. --pin=off pins no rank."`
	NoPrefix   bool          `help:"Show lines without the rank that wrote them."`
	Timestamps bool          `help:"Start each line with the time at which it came."`
	Quiet      bool          `short:"q" help:"Show the lines of rank 0 only."`
	Output     string        `short:"o" placeholder:"DIR" help:"Show no output; write it to new files DIR/rank-0.out, DIR/rank-0.err and so on."`
	Tee        string        `placeholder:"DIR" help:"Write the output of each rank to files as --output does, and show it as well. Files that cannot be written are a warning."`
	Rotate     ccl.ByteSize  `placeholder:"SIZE" help:"Begin a new file of --output or --tee after SIZE bytes, such as 100MiB. The full ones are DIR/rank-0.out.1, the latest, to .3."`
	LogFormat  string        `name:"log-format" aliases:"log_format" enum:"text,json" default:"text" placeholder:"text" help:"Write what goccl run itself says, on standard error, as text, or as lines of json with time, level, msg, job, attempt, node and rank. What ranks write stays as it is."`
	Flight     string        `placeholder:"DIR" env:"GOCCL_FLIGHT" help:"If the job fails, write the flight recorders of all ranks to files in DIR, for goccl inspect. The ranks write theirs as well: they get GOCCL_FLIGHT."`
	Report     string        `placeholder:"FILE" help:"Write a report of the job to FILE, as JSON: of each rank the exit status or signal, the wall time, the transport, and why it failed."`
	Metrics    string        `placeholder:"ADDRESS" help:"Show metrics of the ranks of this node for Prometheus while the job runs: at unix:/PATH or a loopback address such as 127.0.0.1:9400, by HTTP at /metrics, or in file:/DIR/NAME.prom for node_exporter. The ranks get GOCCL_METRICS."`
	Restarts   int           `name:"max-restarts" aliases:"max_restarts" placeholder:"N" help:"If the job fails, start all ranks anew, up to N times, after a pause that grows. Not if it would only fail again: a program or a configuration that is wrong, or one that ends with status 2. Of several nodes, node 0 decides."`
	Window     time.Duration `name:"restart-window" aliases:"restart_window" placeholder:"DURATION" help:"Count the failures of --max-restarts anew after so long without one."`
	Hosts      hostList      `placeholder:"HOST:N,..." help:"Start nothing, since goccl run starts processes of this machine only; show the command lines of mpirun, mpiexec and srun for these hosts."`
	Grace      time.Duration `default:"5s" placeholder:"5s" help:"Time between SIGTERM and SIGKILL."`
	nodeFlags
}

// rankCount is the value of -n. Of -np, which is mpirun's spelling, a short flag gets the p as the
// start of its value.
type rankCount int

// Decode implements kong.MapperValue.
func (n *rankCount) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().IsEOL() {
		return errors.New("want a number")
	}
	text := fmt.Sprint(ctx.Scan.Pop().Value) // also of -1, which looks like a flag
	if rest, np := strings.CutPrefix(text, "p"); np {
		if text = strings.TrimPrefix(rest, "="); text == "" {
			if err := ctx.Scan.PopValueInto("number", &text); err != nil {
				return err
			}
		}
	}

	ranks, err := strconv.Atoi(strings.TrimPrefix(text, "="))
	if err != nil {
		return fmt.Errorf("want a number, but got %q", text)
	}
	*n = rankCount(ranks)
	return nil
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

The first rank that fails ends the job: the others get SIGTERM and, after the grace period, SIGKILL. So does an interrupt; a second one kills at once. SIGUSR1 and SIGUSR2 are passed on to the programs that handle them. All processes in the ranks' process groups are ended. The error names the rank that made the others fail, or that they waited for, with its panic and the functions of the program, its error, its exit status or its signal. A rank that the others waited for gets SIGQUIT in place of SIGTERM: the error shows where it was.

The exit status is 0 if all ranks ended with 0, otherwise that of the rank to blame, or 128 plus the number of the signal that it, or the launcher, got. It is 127 if the program does not exist, 126 if it cannot be executed, 2 for invalid flags, and 1 if a process cannot be started.`
}

// Validate checks required arguments and combinations of flags.
func (c *runCommand) Validate() error {
	switch program := c.program(); {
	case c.PerNode != nil:
		return errors.New("-N is the number of nodes for srun and the ranks of a node for mpirun: goccl run starts all ranks on this node, as many as -n, as in goccl run -n 4 ./train")
	case c.Export != nil:
		return fmt.Errorf("-x %[1]s: ranks inherit the environment; --env sets a variable, as in goccl run --env %[1]s", *c.Export)
	case c.Timeout != nil:
		return fmt.Errorf("--timeout %[1]s: a job has no time limit; how long calls wait for other ranks is GOCCL_TIMEOUT, as in goccl run --env GOCCL_TIMEOUT=%[1]s", *c.Timeout)
	case c.Hosts != nil:
		return c.checkHosts()
	// What goccl run needs.
	case c.Ranks == nil:
		return errors.New("-n is missing: give the number of ranks before the program, as in goccl run -n 4 ./train")
	case *c.Ranks < 1 || *c.Ranks > config.MaxRanks:
		return fmt.Errorf("-n %d: from 1 to %d ranks are possible", *c.Ranks, config.MaxRanks)
	case len(program) == 0 || program[0] == "":
		return fmt.Errorf("the program is missing, as in goccl run -n %d ./train", *c.Ranks)
	// Flags that exclude each other.
	case c.Output != "" && (c.Quiet || c.NoPrefix || c.Timestamps):
		return errors.New("--output shows no lines: it excludes --quiet, --no-prefix and --timestamps")
	case c.Output != "" && c.Tee != "":
		return errors.New("--output shows no lines and --tee does: give one of them")
	case c.Rotate > 0 && c.Output == "" && c.Tee == "":
		return errors.New("--rotate: there are no files without --output or --tee")
	// Restarts.
	case c.Restarts < 0:
		return fmt.Errorf("--max-restarts %d: want 0 or more", c.Restarts)
	case c.Window < 0 || c.Window > 0 && c.Restarts == 0:
		return fmt.Errorf("--restart-window %v: want 0 or more, beside --max-restarts", c.Window)
	case c.Grace < 0:
		return fmt.Errorf("--grace %v: want 0 or more", c.Grace)
	}
	if err := c.check("goccl run --nnodes 2 --node-rank 0 --rdzv-endpoint node-a:29500 -n 4 ./train"); err != nil {
		return err
	}
	_, err := c.variables()
	return err
}

// variables returns the variables of --env with their values.
func (c *runCommand) variables() (variables []string, err error) {
	for _, v := range c.Env {
		name, value, hasValue := strings.Cut(v, "=")
		switch {
		case name == "":
			return nil, fmt.Errorf("--env %q: want NAME=VALUE or NAME", v)
		case launcher.SetsVariable(name):
			return nil, fmt.Errorf("--env %s: goccl run sets this variable of each rank", name)
		case !hasValue:
			if value, hasValue = os.LookupEnv(name); !hasValue {
				return nil, fmt.Errorf("--env %s: the variable is not set; give it a value, as in --env %s=1", name, name)
			}
		}

		same := func(v string) bool { return strings.HasPrefix(v, name+"=") }
		variables = append(slices.DeleteFunc(variables, same), name+"="+value)
	}
	return variables, nil
}

// program returns the program and its arguments.
func (c *runCommand) program() []string {
	if len(c.Args) > 0 && c.Args[0] == "--" {
		return c.Args[1:]
	}
	return c.Args
}

// hinted returns the error of a program that cannot be started, with what was probably meant.
func (c *runCommand) hinted(err error) error {
	name, source := c.program()[0], ""
	if sources, _ := filepath.Glob(filepath.Join(name, "*.go")); sources != nil {
		source = name
	}
	if filepath.Ext(name) == ".go" {
		source = filepath.Dir(name)
	}

	switch {
	case launcher.Pinning(c.Pin) == launcher.PinOn && (name == "on" || name == "off"):
		return fmt.Errorf("%w (did you mean --pin=%s?)", err, name)
	case len(c.program()) == 1 && strings.Contains(name, " "):
		return fmt.Errorf("%w: without quotes the rest are its arguments", err)
	case source == "":
		return err
	}

	dir := filepath.ToSlash(filepath.Clean(source))
	if !filepath.IsAbs(source) && dir != "." {
		dir = "./" + dir
	}
	return fmt.Errorf("%w: it is Go source; goccl run -n %d -- go run %s builds and starts it", err, *c.Ranks, dir)
}

// Run starts the ranks, and returns when all have ended. It shows its error itself.
func (c *runCommand) Run(ctx context.Context, app *kong.Context, stdout io.Writer, stderr stderr) error {
	if c.Hosts != nil {
		return c.elsewhere(ctx)
	}

	log, begun := c.newRunLog(app, stderr), time.Now()
	outcome, err := c.launch(ctx, log, stdout, stderr)
	err = advised(err)
	log.end(outcome, time.Since(begun), err)
	if err != nil {
		return shownError{err}
	}
	return nil
}

// launch starts the ranks, and returns how the last start has ended.
func (c *runCommand) launch(ctx context.Context, log *runLog, stdout io.Writer, stderr stderr) (*launcher.Outcome, error) {
	args := c.program()
	variables, err := c.variables()
	if err != nil {
		return nil, err
	}

	nodes, err := c.nodes(log)
	if err != nil {
		return nil, usageError{err}
	}
	file, invalid := launcher.Find(args[0])
	if invalid != nil {
		invalid = c.hinted(invalid)
	}
	signals := make(chan os.Signal, 16)
	for _, s := range launcher.Signals {
		if !signal.Ignored(s) { // by nohup, or by a shell for background jobs
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	environment := os.Environ()
	if c.Flight != "" {
		if c.Flight, err = filepath.Abs(c.Flight); err != nil { // ranks may change their directory
			return nil, err
		}
		const variable = "GOCCL_FLIGHT="
		environment = slices.DeleteFunc(environment, func(v string) bool { return strings.HasPrefix(v, variable) })
		environment = append(environment, variable+c.Flight)
	}

	job := launcher.Spec{
		Ranks:       int(*c.Ranks),
		Program:     file,
		Args:        args,
		Grace:       c.Grace,
		Pin:         launcher.Pinning(c.Pin),
		Environment: environment,
		Variables:   variables,
		Stdin:       os.Stdin,
		Stdout:      stdout,
		Stderr:      stderr.Writer,
		NoPrefix:    c.NoPrefix,
		Timestamps:  c.Timestamps,
		Quiet:       c.Quiet,
		Files:       launcher.Files{Directory: cmp.Or(c.Output, c.Tee), Beside: c.Tee != "", Bytes: int64(c.Rotate)},
		Flight:      c.Flight,
		Nodes:       nodes,
		Memory:      memory,
		Signals:     signals,
		Warn:        log.warn,

		OwnsChildren: true,
	}
	if c.NodeRank > 0 {
		c.Report = "" // node 0 writes that of all
	}
	report, err := createReport(c.Report)
	if err != nil {
		invalid = cmp.Or[error](invalid, usageError{err})
	}
	stopMetrics, err := c.showMetrics(&job, log)
	if err != nil {
		invalid = cmp.Or[error](invalid, usageError{err})
	} else {
		defer stopMetrics()
	}
	job.Nodes.Invalid = invalid

	restarts := launcher.Restarts{Max: c.Restarts, Window: c.Window, Notice: log.restart}
	outcome, earlier, err := restarts.Run(ctx, &job)

	if pin, few := errors.AsType[*launcher.PinError](err); few {
		err = usageError{fmt.Errorf("--pin: %w: start fewer ranks, or let them share cores with --pin=off", pin.Err)}
	}
	if err == nil && outcome.Warning != "" {
		log.warn(launcher.Warning{Job: outcome.Job, Restart: outcome.Restart, Rank: -1, Text: outcome.Warning})
	}
	return outcome, errors.Join(err, report.write(&job, outcome, earlier, err))
}
