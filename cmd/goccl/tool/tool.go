package tool

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/goccl/goccl/ccl/config"
	"github.com/goccl/goccl/cmd/goccl/internal/launcher"
)

// Main runs the command in the program's arguments and exits. The program must do
// nothing else, since `goccl run` starts the program itself as a helper.
func Main() {
	launcher.Reexecuted()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	var command struct {
		Bench   benchCommand   `cmd:"" help:"Time collectives, beside the yardsticks of the same run."`
		Doctor  doctorCommand  `cmd:"" help:"Show what this machine allows, what is in the way, and how fast it is."`
		Explain explainCommand `cmd:"" help:"Show which algorithm does which call, why, and at what cost."`
		Run     runCommand     `cmd:"" help:"Start a program as several ranks, each a process, and wait for all."`
	}
	ended := false
	parser := kong.Must(&command,
		kong.Name("goccl"),
		kong.Description("Collective communication for Go: the tool."),
		kong.Writers(stdout, stderr),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.BindTo(stdout, (*io.Writer)(nil)),
		kong.Bind(bars{stderr}),
		kong.Exit(func(code int) { status, ended = code, true }),
	)
	call, err := parser.Parse(args)
	if ended { // by --help
		return status
	}
	if err == nil {
		err = config.CheckEnvironment(os.Environ())
	}
	if err == nil {
		err = call.Run()
	}
	parser.FatalIfErrorf(err)
	var usage *kong.ParseError
	if errors.As(err, &usage) && usage.Context.Selected() != nil && usage.Context.Selected().Name == "run" {
		return 2 // as in shells and launchers: 80 could be a rank's
	}
	return status
}
