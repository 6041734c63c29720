package tool

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// stderr is standard error, which shows progress if it is a terminal.
type stderr struct{ io.Writer }

// progress is a line on a terminal that says how many steps are done.
type progress struct {
	out         io.Writer
	done, steps int
}

// start returns the progress of that many steps.
func (e stderr) start(steps int) *progress {
	p := &progress{out: io.Discard, steps: steps}
	if f, ok := e.Writer.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.out = f
	}
	return p
}

func (p *progress) show(what string) { fmt.Fprintf(p.out, "\r\x1b[K%d/%d %s", p.done, p.steps, what) }
func (p *progress) clear()           { fmt.Fprint(p.out, "\r\x1b[K") }
