package tool

import (
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// Main runs the command that the program's arguments name, and ends the program.
func Main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program: it returns the exit status.
func run(args []string, stdout, stderr io.Writer) (status int) {
	var command struct {
		Explain explainCommand `cmd:"" help:"Show which algorithm does which call, why, and at what cost."`
	}
	ended := false
	parser := kong.Must(&command,
		kong.Name("goccl"),
		kong.Description("Collective communication for Go: the tool."),
		kong.Writers(stdout, stderr),
		kong.BindTo(stdout, (*io.Writer)(nil)),
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
