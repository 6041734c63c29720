package shm

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/goccl/goccl/transport"
)

// regions are the regions of a group, in the order in which they were made, which is
// the same on all ranks: the number of one is its name.
type regions struct {
	make makeRegion
	mu   sync.Mutex         // held by their rank to write all, and by others to read it
	all  []transport.Region // nil: it was freed
}

// makeRegion returns the region with a number.
type makeRegion func(ctx context.Context, number, size int) (transport.Region, error)

// set notes the region with a number.
func (r *regions) set(number int, region transport.Region) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number == len(r.all) {
		r.all = append(r.all, nil)
	}
	r.all[number] = region
}

// shown is where the buffers lie that a rank brought to the call entered last: each
// a place and a length. A rank writes it before its line, and the others read it
// until the call is completed.
type shown struct {
	send, sendBytes, recv, recvBytes atomic.Uint64
	_                                [96]byte
}

const shownBytes = 128

// A place is the number of a region, from 1 on, above the offset in it.
const (
	nowhere    = 0
	anywhere   = 1 << 63 // of a buffer without bytes
	regionBits = 48
)

// Region implements transport.Regions.
func (ep *endpoint) Region(ctx context.Context, size int) (transport.Region, error) {
	number := len(ep.regions.all)
	r, err := ep.regions.make(ctx, number, size)
	if err != nil {
		return nil, err
	}
	ep.regions.set(number, r)
	return &freeable{Region: r, ep: ep, number: number}, nil
}

// freeable is a region that its endpoint forgets when it is freed.
type freeable struct {
	transport.Region
	ep     *endpoint
	number int
	once   sync.Once
}

func (f *freeable) Free() (err error) {
	f.once.Do(func() {
		f.ep.regions.set(f.number, nil)
		err = f.Region.Free()
	})
	return err
}

func (ep *endpoint) shown(rank int) *shown {
	return at[shown](ep.arena, ep.layout.shown+rank*shownBytes)
}

// show says where the buffers of a call lie.
func (ep *endpoint) show(e *transport.Entry) {
	s := ep.shown(ep.Rank())
	s.send.Store(ep.place(e.Send))
	s.sendBytes.Store(uint64(len(e.Send)))
	s.recv.Store(ep.place(e.Recv))
	s.recvBytes.Store(uint64(len(e.Recv)))
}

// allShown reports whether the buffers of all ranks lie where this one sees them.
func (ep *endpoint) allShown() bool {
	for rank := range ep.Size() {
		s := ep.shown(rank)
		if s.send.Load() == nowhere || s.recv.Load() == nowhere {
			return false
		}
	}
	return true
}

// Buffers implements transport.Memory.
func (ep *endpoint) Buffers(rank int) (send, recv []byte) {
	s := ep.shown(rank)
	return ep.memoryAt(s.send.Load(), s.sendBytes.Load()), ep.memoryAt(s.recv.Load(), s.recvBytes.Load())
}

// memoryAt returns what lies at a place. The memory is shared, so a place may be none;
// that panics, which fails the call.
func (ep *endpoint) memoryAt(place, bytes uint64) []byte {
	if place == anywhere {
		return nil
	}
	offset := place & (1<<regionBits - 1)
	return ep.regions.all[place>>regionBits-1].Bytes()[offset : offset+bytes : offset+bytes]
}

// heapRegions makes the regions of ranks that are goroutines with an arena on the
// heap: whoever asks first for a region makes it.
func heapRegions() makeRegion {
	var (
		mu   sync.Mutex
		made []heapRegion
	)
	return func(_ context.Context, number, size int) (transport.Region, error) {
		mu.Lock()
		defer mu.Unlock()
		for len(made) <= number {
			made = append(made, heapRegion(heapArena(size).bytes(0, size)))
		}
		return made[number], nil
	}
}

type heapRegion []byte

func (r heapRegion) Bytes() []byte { return r }
func (r heapRegion) Free() error   { return nil }
