package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/doctor"
	"github.com/goccl/goccl/internal/launcher"
	"github.com/goccl/goccl/transport/shm"
)

// memory is the memory that ranks of goccl run share.
var memory = launcher.MemoryOf(shm.OpenFlight, shm.OpenNodeFlight, shm.RemoveLeftovers)

// Main runs the command in the program's arguments and exits. The program must do
// nothing else, since `goccl run` starts the program itself as a helper.
func Main() {
	launcher.Reexecuted(memory)
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program and returns the exit status.
func run(ctx context.Context, args []string, out, errs io.Writer) (status int) {
	ended := false
	parser := newParser(
		kong.Vars{"version": version()},
		kong.Writers(out, errs),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.BindTo(out, (*io.Writer)(nil)),
		kong.Bind(stderr{errs}),
		kong.Exit(func(code int) { status, ended = code, true }),
	)

	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case len(args) == 1 && args[0] == "version":
		args = []string{"--version"}
	}
	call, err := parser.Parse(args)
	if ended { // by --help or --version
		return status
	}
	if err == nil {
		err = cmp.Or(doctor.CheckFiles(), config.CheckEnvironment(os.Environ()))
	}

	if err == nil {
		err = call.Run()
	}
	if shown, ok := errors.AsType[shownError](err); ok {
		return statusOf(shown.error)
	}
	if usage, ok := errors.AsType[*kong.ParseError](err); ok {
		err = usageError{withMeant(usage)}
	}
	parser.FatalIfErrorf(advised(err))
	return status
}

// advised adds what to do to errors of a machine that lacks what every program needs.
func advised(err error) error {
	path, _ := errors.AsType[*fs.PathError](err)
	isMissing := path != nil && errors.Is(err, fs.ErrNotExist)
	switch {
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: raise ulimit -n; goccl run opens about 15 files, and 4 for each rank", err)
	case isMissing && strings.HasPrefix(path.Path, "/proc/self/"):
		return fmt.Errorf("%w: mount /proc, as in mount -t proc proc /proc", err)
	case isMissing && path.Path == os.DevNull:
		return fmt.Errorf("%w: make it, as in mknod -m 666 %s c 1 3", err, os.DevNull)
	}
	return err
}

func newParser(options ...kong.Option) *kong.Kong {
	var command struct {
		Version kong.VersionFlag `help:"Show the version of the program, and of Go."`

		Bench   benchCommand   `cmd:"" help:"Time collectives, beside the yardsticks of the same run."`
		Config  configCommand  `cmd:"" help:"Check configuration files, and print their schema for editors."`
		Doctor  doctorCommand  `cmd:"" help:"Show what this machine allows, what is in the way, and how fast it is."`
		Explain explainCommand `cmd:"" help:"Show which algorithm does which call, why, and at what cost."`
		Help    helpCommand    `cmd:"" help:"Show the flags of a command, like its --help."`
		Inspect inspectCommand `cmd:"" help:"Show where the ranks of a failed or running job are, from their flight recorders."`
		Run     runCommand     `cmd:"" help:"Start a program as several ranks, each a process, and wait for all."`
	}
	return kong.Must(&command, append(options,
		kong.Name("goccl"),
		kong.Description("Collective communication for Go: the tool."))...)
}

// withMeant returns a mistake in the command line, with what was probably meant, or where to look.
func withMeant(mistake *kong.ParseError) error {
	text, guess, _ := strings.Cut(mistake.Error(), ", did you mean ")
	argument, isArgument := strings.CutPrefix(text, "unexpected argument ")
	isGuessed := guess != "" && guess != `"-h"?` // a letter is near each other one
	switch {
	case isGuessed:
		return fmt.Errorf("%s, did you mean %s?", text, withoutAliases(guess, mistake.Context.Flags()))
	case !isArgument && !strings.HasPrefix(text, "unknown flag "):
		return mistake
	}

	of := mistake.Context.Selected()
	argument, _, _ = strings.Cut(argument, ",")
	_, err := os.Stat(argument)
	isFile := isArgument && err == nil

	switch {
	case of == nil && isFile:
		return fmt.Errorf("%s: did you mean goccl run -n 4 %s? %s", text, argument, commands(mistake.Context))
	case of == nil:
		return fmt.Errorf("%s; %s", text, commands(mistake.Context))
	case isFile && of.Name == "explain":
		return fmt.Errorf("%s: name one configuration file by its flag, as in goccl explain --config %s", text, argument)
	case isFile && of.Name == "config":
		return fmt.Errorf("%s: did you mean goccl config check %s?", text, argument)
	}
	return fmt.Errorf("%s; goccl %s --help shows what it takes", text, of.Path())
}

// guessed matches a name in a guess.
var guessed = regexp.MustCompile(`"[^"]+"`)

// withoutAliases returns what a guess proposes, and a flag in place of each alias.
func withoutAliases(guess string, flags []*kong.Flag) string {
	names := guessed.FindAllString(guess, -1)
	for i, name := range names {
		for _, f := range flags {
			if slices.Contains(f.Aliases, strings.Trim(name, `"-`)) {
				names[i] = strconv.Quote("--" + f.Name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " or ")
}

// commands lists the commands.
func commands(c *kong.Context) string {
	var names []string
	for _, command := range c.Model.Children {
		names = append(names, command.Name)
	}
	return "commands: " + strings.Join(names, ", ")
}

// usageError is a mistake in the command line.
type usageError struct{ error }

// ExitCode implements kong.ExitCoder with the status of shells and launchers.
func (usageError) ExitCode() int { return 2 }
