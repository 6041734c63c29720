package processes

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/dist"
	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// If /dev/shm has no room for the shared memory that ranks ask for, all of them get the same error,
// continue, and get less memory, for which it has room.
func TestNoRoom(t *testing.T) {
	const ranks = 3
	if tooMuch(ranks) == 0 {
		t.Skip("/dev/shm has no limit")
	}
	j := start(t, ranks, part{Config: yamlFor(ranks), Rounds: 1, Calls: calls(ranks), Timeout: patience / 2, Scene: "room"}, nil)
	said := ""
	for _, r := range j.ranks {
		got := r.sound()
		if r.number == 0 {
			said = got.Text
		}
		if got.Err != "" || got.Text != said {
			t.Errorf("rank %d at %s: %s; the error is\n%s, and on rank 0\n%s", r.number, got.Point, got.Err, got.Text, said)
		}
	}
	j.leavesNothing()
}

// tooMuch returns a number of bytes of which each rank's part exceeds all of /dev/shm; 0 if
// /dev/shm has no limit.
func tooMuch(ranks int) int {
	var s unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &s); err != nil {
		panic(err)
	}
	return int(s.Blocks) * int(s.Bsize) * (ranks + 1)
}

// room asks for too much, then for little.
func (p *part) room(_ func(string), r *result) error {
	all, err := dist.Default()
	if err != nil {
		return err
	}
	ctx, c := context.Background(), all.Communicator()
	for range 3 {
		_, err1 := ccl.CreateSharedRegion[uint8](ctx, c, tooMuch(c.Size()))
		_, err2 := ccl.Alloc[float32](ctx, c, tooMuch(c.Size()))
		for _, err := range []error{err1, err2} {
			failed, ok := errors.AsType[*transport.AllocationFailedError](err)
			if !ok {
				return fmt.Errorf("want an AllocationFailedError, got %w", err)
			}
			r.Text += fmt.Sprintln(failed.RequestedBytes, failed)
		}
		region, err := ccl.CreateSharedRegion[uint8](ctx, c, 10_000)
		if err != nil {
			return err
		}
		v, err := ccl.Alloc[float32](ctx, c, 1000)
		if err != nil {
			return err
		}
		if err := errors.Join(dist.AllReduce(v, dist.Sum), region.Close()); err != nil {
			return err
		}
	}
	return nil
}

// noRoom asks for more memory than /dev/shm has room for, and continues without it.
func (w *place) noRoom() ([]int, error) {
	ctx, c := context.Background(), w.all.Communicator()
	bytes := tooMuch(w.size)
	if bytes == 0 {
		return w.all.Ranks(), dist.Barrier()
	}
	var err error
	if w.IntN(2) == 0 {
		_, err = ccl.CreateSharedRegion[uint8](ctx, c, bytes)
	} else {
		_, err = ccl.Alloc[uint8](ctx, c, bytes)
	}
	if _, ok := errors.AsType[*transport.AllocationFailedError](err); ok {
		return w.all.Ranks(), dist.Barrier()
	}
	if err == nil {
		err = fmt.Errorf("there was room for %d bytes", bytes)
	}
	return w.all.Ranks(), err
}
