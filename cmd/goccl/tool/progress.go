package tool

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bars is the writer of progress bars, standard error.
type bars struct{ io.Writer }

// progress is a progress bar on a terminal, and nothing elsewhere.
type progress struct {
	out bars
	bar *progressbar.ProgressBar
}

func (p *progress) start(steps int) {
	f, ok := p.out.Writer.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return
	}
	p.bar = progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(f),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish())
}

// Errors of the progress bar do not matter.

func (p *progress) describe(text string) {
	if p.bar != nil {
		p.bar.Describe(text)
	}
}

func (p *progress) add() {
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
}

// clear erases the bar before a line is written.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
