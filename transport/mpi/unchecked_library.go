//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

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

func (u libraryCalls) send(ctx context.Context, b []byte, to, tag int) error {
	if err := checkTag(tag); err != nil {
		return err
	}
	r := new(abi.Request)
	if err := u.world.Isend(r, b, to, tag); err != nil {
		return err
	}

	ended, err := pollRequest(ctx, r)
	if !ended {
		r.Abandon()
		return transport.ContextError(ctx)
	}
	return err
}

func (u libraryCalls) recv(ctx context.Context, b []byte, from, tag int) (bytes int, err error) {
	if err := checkTag(tag); err != nil {
		return 0, err
	}
	r := new(abi.Request)
	if err := u.world.Irecv(r, b, from, tag); err != nil {
		return 0, err
	}

	ended, err := pollRequest(ctx, r)
	if !ended {
		if err := r.Cancel(); err != nil {
			return 0, err
		}
		if _, err = pollRequest(context.WithoutCancel(ctx), r); err == nil && r.Cancelled {
			err = transport.ContextError(ctx)
		}
	}
	return r.Bytes, err
}

// checkTag returns an error if a message may not have that tag.
func checkTag(tag int) error {
	if tag < 0 || tag > 32767 || tag == packetTag {
		return fmt.Errorf("tag %d: tags are from 0 to 32767, except %d, which is the transport's", tag, packetTag)
	}
	return nil
}

// uncheckedSpinTime is how long pollRequest polls before it sleeps in between.
const uncheckedSpinTime = 500 * time.Microsecond

// pollRequest waits until a transfer has ended, or ctx ends.
func pollRequest(ctx context.Context, r *abi.Request) (ended bool, err error) {
	for begin := time.Now(); ctx.Err() == nil; {
		if ended, err := r.Test(); ended {
			return true, err
		}
		if time.Since(begin) > uncheckedSpinTime {
			time.Sleep(napTime)
		} else {
			runtime.Gosched()
		}
	}
	return false, nil
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
