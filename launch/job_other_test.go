//go:build !unix

package launch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/launch"
)

// On other systems Run starts nothing, and says what to do.
func TestUnsupported(t *testing.T) {
	job := launch.Job{Ranks: 2, Args: []string{}}
	_, err := job.Run(context.Background())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "dist.Spawn")
	require.False(t, launch.IsRank())
}
