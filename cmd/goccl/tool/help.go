package tool

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// helpCommand is `goccl help`.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command; by default all commands."`
}

// Run prints what --help of the command prints.
func (c *helpCommand) Run(call *kong.Context) error {
	of, err := kong.Trace(call.Kong, c.Command)
	if err == nil {
		err = of.Error
	}
	if err != nil {
		return usageError{fmt.Errorf("%w; %s", err, commands(call))}
	}
	return of.PrintUsage(false)
}
