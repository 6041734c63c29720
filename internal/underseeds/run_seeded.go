//go:build interleave

package underseeds

import (
	"fmt"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
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

// Label names the rank that the calling goroutine is.
func Label(rank int) { interleave.SetLabel(fmt.Sprint("rank ", rank)) }
