package packet

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each process watches all others of its host, those of lower ranks as well.
func TestAllOfAHostAreWatched(t *testing.T) {
	all := processes(3)
	for rank, p := range all {
		p.describe = func() string { return fmt.Sprintf("boot pids node%d %d token %q", rank, os.Getppid(), "vm") } // none of them is this one
	}
	for _, ep := range joinAll(t, all) {
		require.NoError(t, errors.Join(ep.Close(), ep.Free()))
	}
	for _, p := range all {
		require.Equal(t, []int{0, 1, 2}, p.deaths.watched.ranks)
	}
}
