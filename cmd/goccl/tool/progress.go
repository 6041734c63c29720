package tool

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bars is the writer of progress bars, standard error.
type bars struct{ io.Writer }

// start returns a progress bar, which is shown only on a terminal.
func (b bars) start(steps int) *progressbar.ProgressBar {
	out := io.Discard
	if f, ok := b.Writer.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		out = f
	}
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(out),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish())
}
