package mpi

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/transport"
)

// errReached is the error of a call that reaches the library.
var errReached = errors.New("the library was called")

// reached are calls of a library that must not be called.
type reached struct{}

func (reached) barrier() error                                              { return errReached }
func (reached) broadcast([]byte, int, transport.ElementType, int) error     { return errReached }
func (reached) send(context.Context, []byte, int, int) error                { return errReached }
func (reached) recv(context.Context, []byte, int, int) (int, error)         { return 0, errReached }
func (reached) allGather(_, _ []byte, _ int, _ transport.ElementType) error { return errReached }
func (reached) finalized() bool                                             { return false }
func (reached) finalize(context.Context) error                              { return nil }
func (reached) allReduce(_, _ []byte, _ int, _ transport.ElementType, _ transport.ReduceOp) error {
	return errReached
}

// A rank that does not exist is an error before the library is called, which would get the lower 32
// bits: rank 0 for 1<<32, and for -1 none, or any, as the library likes.
func TestUncheckedRanks(t *testing.T) {
	c := &UncheckedComm{calls: reached{}, size: 3}
	for rank, isRight := range map[int]bool{0: true, 2: true, 3: false, -1: false, -2: false, 1 << 32: false, 1<<32 + 1: false, math.MinInt: false, math.MaxInt: false, -1 << 31: false} {
		_, err := UncheckedRecv(t.Context(), c, []int32{1}, rank, 0)
		for what, err := range map[string]error{
			"UncheckedSend":      UncheckedSend(t.Context(), c, []int32{1}, rank, 0),
			"UncheckedRecv":      err,
			"UncheckedBroadcast": UncheckedBroadcast(c, []int32{1}, rank),
		} {
			if isRight {
				require.ErrorIs(t, err, errReached, "%s of rank %d", what, rank)
				continue
			}
			require.NotErrorIs(t, err, errReached, "%s of rank %d", what, rank)
			require.ErrorContains(t, err, what+": rank ")
			require.ErrorContains(t, err, "does not exist: ranks are 0 to 2")
		}
	}
}
