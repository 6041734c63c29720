//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"os"

	"github.com/goccl/goccl/transport"
	"github.com/goccl/goccl/transport/mpi/internal/abi"
)

// libraryCalls implements uncheckedCalls.
type libraryCalls struct{ world *abi.World }

func startUnchecked(ctx context.Context) (calls uncheckedCalls, rank, size int, err error) {
	w, err := abi.Init(ctx, os.Getenv(libraryVariable), os.Getenv)
	if err != nil {
		return nil, 0, 0, err
	}
	return libraryCalls{w}, w.Rank, w.Size, nil
}

func (u libraryCalls) barrier() error { return u.world.Barrier() }

func (u libraryCalls) broadcast(b []byte, count int, t transport.ElementType, root int) error {
	return u.world.Broadcast(b, count, t, root)
}

func (u libraryCalls) allReduce(send, recv []byte, count int, t transport.ElementType, op transport.ReduceOp) error {
	return u.world.AllReduce(inPlaceOr(send, recv), recv, count, t, op)
}

func (u libraryCalls) allGather(send, recv []byte, count int, t transport.ElementType) error {
	return u.world.AllGather(inPlaceOr(send, recv[u.world.Rank*len(send):]), recv, count, t)
}

// inPlaceOr returns what a call takes for send if its data already lies in recv.
func inPlaceOr(send, recv []byte) []byte {
	if len(send) > 0 && &send[0] == &recv[0] {
		return abi.InPlace
	}
	return send
}

func (libraryCalls) finalized() bool { return abi.Finalized() }

func (libraryCalls) finalize(ctx context.Context) error {
	connected.Lock()
	defer connected.Unlock()
	if connected.process != nil {
		return nil
	}
	return abi.Finalize(ctx)
}
