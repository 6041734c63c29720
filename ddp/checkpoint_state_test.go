package ddp_test

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ddp"
	"github.com/goccl/goccl/dist"
)

// ending is a state whose encoding ends in some way.
type ending struct{ end func() }

func (e ending) MarshalJSON() ([]byte, error) {
	e.end()
	return []byte("1"), nil
}

// A state that ends its goroutine while it is written ends the worker's: Save does not succeed.
func TestStateThatEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	save := func(end func()) error {
		return dist.Spawn(func(context.Context, int) error {
			if err := dist.InitProcessGroup("ccl"); err != nil {
				return err
			}
			r, err := ddp.New(bg, world(), small(), ddp.Options{})
			if err != nil {
				return err
			}
			return r.Save(bg, path, ending{end})
		}, dist.WithRanks(2))
	}
	require.NoError(t, save(func() {}))
	require.ErrorContains(t, save(func() { panic("no state") }), "panicked: no state")
	require.ErrorIs(t, save(runtime.Goexit), dist.ErrGoexit)
}
