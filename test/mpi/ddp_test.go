//go:build linux && (amd64 || arm64)

package mpi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example trains the same weights on all ranks over MPI, built without cgo or with it.
func TestDDP(t *testing.T) {
	for _, cgo := range []string{"0", "1"} {
		t.Run("CGO_ENABLED="+cgo, func(t *testing.T) {
			ddp := buildBy(t, cgo, "examples/ddp", "build")
			each(t, func(t *testing.T, m mpi) {
				for _, n := range []int{2, 3, 4, 8} {
					if cgo == "1" && n != 4 && !*whole {
						continue // the ranks make the same calls
					}
					out, err := m.of(ddp, "-epochs", "1").start(t, n, "")
					require.NoError(t, err, "%s", out)
					require.Contains(t, out, " over mpi ")
					require.Contains(t, out, fmt.Sprintf("weights: equal bit by bit on all %d ranks", n))
				}
			})
		})
	}
}
