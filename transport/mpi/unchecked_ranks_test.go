//go:build linux && (amd64 || arm64)

package mpi

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport/mpi/internal/abi"
)

// A rank that does not exist is an error before the library is called, which would get the lower 32
// bits: rank 0 for 1<<32, and for -1 none, or any, as the library likes. Here no library is loaded.
func TestUncheckedRanks(t *testing.T) {
	c := &UncheckedComm{calls: libraryCalls{&abi.World{Comm: abi.Comm{Size: 3}}}, size: 3}
	for _, rank := range []int{3, -1, -2, 1 << 32, 1<<32 + 1, math.MinInt, math.MaxInt, -1 << 31} {
		err := UncheckedBroadcast(c, []int32{1}, rank)
		require.EqualError(t, err, fmt.Sprintf("mpi: UncheckedBroadcast: rank %d does not exist: ranks are 0 to 2", rank))
	}
}
