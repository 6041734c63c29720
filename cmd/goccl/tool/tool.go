package tool

import (
	"context"
	"io"
	"os"
	"os/signal"

	"github.com/alecthomas/kong"
)

// Main runs the command that the program's arguments name, and ends the program.
func Main() {
	// The first interrupt ends a benchmark between two calls. After that, interrupts
	// have their usual effect.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	var command struct {
		Bench   benchCommand   `cmd:"" help:"Time collectives, beside the yardsticks of the same run."`
		Explain explainCommand `cmd:"" help:"Show which algorithm does which call, why, and at what cost."`
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
		err = call.Run()
	}
	parser.FatalIfErrorf(err)
	return status
}
