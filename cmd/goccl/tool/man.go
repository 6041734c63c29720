package tool

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand is `goccl man`.
type manCommand struct{}

// Help returns the text of `goccl man --help` beside the flags.
func (*manCommand) Help() string {
	return `Read it: goccl man | man -l -

Install it: goccl man > ~/.local/share/man/man1/goccl.1`
}

// Run prints the page.
func (*manCommand) Run(call *kong.Context, stdout io.Writer) error {
	_, err := io.WriteString(stdout, manPage(call.Model))
	return err
}

// exitStatuses are the exit statuses of the program, except those of `goccl run`.
var exitStatuses = []struct{ status, meaning string }{
	{"0", "Success. A call that bench shows as refused is an answer and no failure."},
	{"1", "The command failed: the configuration or an environment variable is invalid, config check finds a mistake, an entry or a transport does not exist, explain shows a row that is refused or that no rule matches, a measured result is wrong, nothing could be measured, a cell of a sweep failed, a problem keeps ranks from working, or doctor --clean could not remove a segment."},
	{"2", "The command line is wrong: an unknown command or flag, a value that the flag does not accept, or flags that exclude each other. Nothing was started."},
	{"other", "Of goccl run: the status of the rank to blame, 128 plus the number of a signal, 126 or 127 if the program cannot be executed or does not exist."},
}

// manPage returns the manual page of the program, for the macros man(7).
func manPage(app *kong.Application) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH GOCCL 1 \"\" \"%s\"\n", roff(strings.Split(version(), ",")[0]))
	fmt.Fprintf(&b, ".SH NAME\ngoccl \\- collective communication for Go\n.SH SYNOPSIS\n")
	var commands []*kong.Node
	for _, n := range app.Leaves(true) {
		commands = append(commands, n)
		fmt.Fprintf(&b, ".B goccl\n%s\n.br\n", roff(n.Summary()))
	}
	b.WriteString(".SH DESCRIPTION\n")
	b.WriteString(paragraphs(app.Help))
	b.WriteString(".SH OPTIONS\n")
	manFlags(&b, app.Flags)
	b.WriteString(".SH COMMANDS\n")
	for _, n := range commands {
		fmt.Fprintf(&b, ".SS goccl %s\n", roff(n.Path()))
		b.WriteString(paragraphs(n.Help + "\n\n" + n.Detail))
		for _, arg := range n.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(arg.Name), roff(arg.Help))
		}
		manFlags(&b, n.Flags)
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, s := range exitStatuses {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", s.status, roff(s.meaning))
	}
	b.WriteString(".SH SEE ALSO\n" + roff("https://pkg.go.dev/"+modulePath) + "\n")
	return b.String()
}

func manFlags(b *strings.Builder, flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = "-" + string(f.Short) + ", " + name
		}
		if !f.IsBool() {
			name += "=" + f.FormatPlaceHolder()
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(f.Help))
	}
}

// paragraphs returns text whose paragraphs are separated by empty lines.
func paragraphs(text string) string {
	var all []string
	for _, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		all = append(all, roff(p)+"\n")
	}
	return strings.Join(all, ".PP\n")
}

var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ")

// roff returns text in which no character is markup.
func roff(text string) string {
	text = roffEscapes.Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
