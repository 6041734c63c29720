//go:build interleave

package underseeds

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/launchenv"
)

// run runs a program in the order that a seed chooses.
func run(t *testing.T, seed uint64, program func() error) (err error) {
	t.Helper()
	r := interleave.Run(t, interleave.Options{Seed: seed}, func() { err = program() })
	if r.Finding == nil {
		return err
	}
	found := &foundError{r.Finding}
	if err != nil {
		return fmt.Errorf("%w\n%w", err, found)
	}
	return found
}

// The size of a picture.
const (
	pictureLines = 40
	pictureWidth = 140
)

// picture shows the lines that the ranks reach under a seed for which the program fails. It runs
// the program again, and often if isSilent: with fewer and fewer switches from rank to rank.
func picture(t *testing.T, seed uint64, isSilent bool, err error, program func() error) string {
	f, ok := errors.AsType[*foundError](err)
	if ok && (f.Kind == interleave.Blocked || f.Kind == interleave.Busy || f.Kind == interleave.Stranger || f.Kind == interleave.Race) {
		return "" // the line is all; and the detector reports a race once
	}
	o := interleave.Options{Seed: seed, IsRecorded: true}
	again := func(o interleave.Options) (interleave.Result, bool) {
		var err error
		r := interleave.Run(t, o, func() { err = program() })
		return r, err != nil || r.Finding != nil
	}
	if isSilent {
		o, _ = interleave.Shrink(o, 100, again)
	}

	o.IsTraced, o.IsProgram = true, func(f runtime.Frame) bool {
		return launchenv.Frame{Function: f.Function, File: f.File}.IsOwn()
	}
	r, hasFailed := again(o)
	if !hasFailed {
		return "\nit does not fail again: the program has kept something from an earlier seed"
	}
	lines := interleave.Picture(r.Trace, pictureLines, pictureWidth)
	return "\nlines in the order in which the ranks have reached them, with the number of each goroutine:\n" + strings.TrimRight(lines, "\n")
}

// Label names the rank that the calling goroutine is.
func Label(rank int) { interleave.SetLabel(fmt.Sprint("rank ", rank)) }
