package tool

import (
	"fmt"
	"strings"

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
		var names []string
		for _, command := range call.Model.Children {
			names = append(names, command.Name)
		}
		return usageError{fmt.Errorf("%w; commands: %s", err, strings.Join(names, ", "))}
	}
	return of.PrintUsage(false)
}
