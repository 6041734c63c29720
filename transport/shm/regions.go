package shm

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/internal/memmove"
	"github.com/goccl/goccl/internal/memory"
	"github.com/goccl/goccl/transport"
)

// regions are the regions of a group that a rank has. Each has a unique number, which is the same
// on all ranks.
//
// A rank may call Free on a region at any time. Other ranks may still show it buffers there, and
// a call of its own may still use it. The rank therefore keeps the memory until all ranks have
// called Free. It then unmaps the memory while none of its calls is between Enter and its end: at
// the start of the next call, when it makes a region, or with the endpoint.
type regions struct {
	alloc      makeRegion
	made       uint64 // how many were made: the number of the next
	mu         interleave.Mutex
	all        []*region       // in order of number; only calls write it, under mu, and they may read it without
	someFreed  interleave.Bool // this rank has done with some
	isDetached bool            // the endpoint is free: regions are this rank's own affair
}

// makeRegion returns the memory of the region with a number. If it fails it fails on all ranks;
// errors.As then finds a *transport.AllocationFailedError.
type makeRegion func(number uint64, size int) (regionMemory, error)

// regionMemory is the memory of a region as one rank sees it.
type regionMemory interface {
	bytes() []byte
	// leave marks the region as no longer used by this rank.
	leave()
	// isUnused reports whether all ranks have called leave.
	isUnused() bool
	// discard frees the memory, which ranks may still have mapped. All ranks have left it.
	discard()
	// close unmaps the memory on this rank.
	close() error
}

// region implements transport.Region.
type region struct {
	regionMemory
	number  uint64
	of      *regions
	bytes   []byte // regionMemory.bytes()
	isFreed bool   // guarded by of.mu
}

func (r *region) Bytes() []byte { return r.bytes }

func (r *region) Free() error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.isFreed {
		return nil
	}

	r.isFreed = true
	if r.of.isDetached {
		return r.close()
	}
	r.leave()
	if r.isUnused() {
		r.discard()
	}
	r.of.someFreed.Store(true)
	return nil
}

// sweep unmaps the regions that all ranks have freed. It must be called from the rank's calls.
func (rs *regions) sweep() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	waiting := false
	rs.all = slices.DeleteFunc(rs.all, func(r *region) bool {
		if !r.isFreed {
			return false
		}
		if !r.isUnused() {
			waiting = true
			return false
		}
		_ = r.close() // cannot fail: the memory is mapped, and close is called once
		return true
	})
	rs.someFreed.Store(waiting)
}

// free unmaps the regions that this rank has freed. Each other region is unmapped when the rank
// frees it.
func (rs *regions) free() (err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.isDetached = true
	for _, r := range rs.all {
		if r.isFreed {
			err = errors.Join(err, r.close())
		}
	}
	rs.all = nil
	return err
}

// find returns the region with a number, or nil if this rank does not have it.
func (rs *regions) find(number uint64) *region {
	for _, r := range slices.Backward(rs.all[:min(number+1, uint64(len(rs.all)))]) { // the index is at most the number, since regions are removed
		if r.number <= number {
			if r.number == number {
				return r
			}
			return nil
		}
	}
	return nil
}

// shown holds where a rank's buffers of a call lie. The rank writes it before its line.
type shown struct {
	send, recv shownBuffer
	_          [128 - 48]byte
}

type shownBuffer struct{ region, offset, length interleave.Uint64 }

const shownBytes = 128

// Values of shownBuffer.region that are not the number of a region.
const (
	nowhere  = math.MaxUint64     // the buffer lies in no region
	anywhere = math.MaxUint64 - 1 // the buffer is empty
)

func (ep *endpoint) Region(size int) (transport.Region, error) {
	rs := ep.regions
	rs.sweep()
	number := rs.made
	rs.made++
	m, err := rs.alloc(number, size)
	if err != nil {
		return nil, err
	}

	r := &region{regionMemory: m, number: number, of: rs, bytes: m.bytes()}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all = append(rs.all, r)
	return r, nil
}

// shown returns where a rank's buffers of the current call lie. Calls alternate between two: a rank
// may read them until it publishes its line of the next call.
func (ep *endpoint) shown(rank int) *shown {
	return at[shown](ep.arena, ep.layout.shown+(2*rank+int(ep.call&1))*shownBytes)
}

// show stores where the buffers of a call lie.
func (ep *endpoint) show(e *transport.Arrival) {
	if ep.regions.someFreed.Load() {
		ep.regions.sweep()
	}
	s := ep.shown(ep.Rank())
	ep.showBuffer(&s.send, e, e.Send)
	ep.showBuffer(&s.recv, e, e.Recv)
}

// showBuffer stores where a buffer of a call lies. An Eager call of a rank that sleeps is never in
// place, because that takes a second synchronisation. The words of a buffer that stays the same
// are not written, so that their cache line stays with the ranks that read it.
func (ep *endpoint) showBuffer(s *shownBuffer, e *transport.Arrival, b []byte) {
	region, offset := ep.regions.locate(b)
	if e.Eager && (!ep.poll || e.NoSpin) {
		region, offset = nowhere, 0
	}
	if n := uint64(len(b)); s.region.Load() != region || s.offset.Load() != offset || s.length.Load() != n {
		s.region.Store(region)
		s.offset.Store(offset)
		s.length.Store(n)
	}
}

// inRegion reports whether the buffers of a rank lie in regions.
func (ep *endpoint) inRegion(rank int) bool {
	s := ep.shown(rank)
	return s.send.region.Load() != nowhere && s.recv.region.Load() != nowhere
}

// allShown reports whether the buffers of all ranks lie in regions.
func (ep *endpoint) allShown() bool {
	for rank := range ep.Size() {
		if !ep.inRegion(rank) {
			return false
		}
	}
	return true
}

// withholds reports whether this rank does not bring the payload of an Eager call to Enter,
// because its buffers lie in regions. A payload that fits into a line always travels there.
func (ep *endpoint) withholds(e *transport.Arrival) bool {
	return e.Eager && len(e.Payload) > transport.InlineBytes && ep.inRegion(ep.Rank())
}

// showWithheld shows the payloads that ranks have withheld from an Eager call that is not in
// place. All ranks know whether one may have; then it takes a round.
func (ep *endpoint) showWithheld(e *transport.Arrival) error {
	for rank := range ep.Size() {
		if ep.inRegion(rank) {
			if ep.withholds(e) {
				memmove.Copy(ep.slots[ep.Rank()][e.Seq&1], e.Payload)
			}
			return ep.Flip()
		}
	}
	return nil
}

func (ep *endpoint) Buffers(rank int) (send, recv []byte) {
	s := ep.shown(rank)
	return ep.shownMemory(rank, &s.send), ep.shownMemory(rank, &s.recv)
}

// Displs implements transport.Memory. It is never called, because each rank runs its own body.
func (ep *endpoint) Displs(int) []int { return nil }

// shownMemory returns a buffer that a rank shows. If s is invalid, because a rank has overwritten
// it, shownMemory panics with a *transport.ProtocolError, which fails the call.
func (ep *endpoint) shownMemory(rank int, s *shownBuffer) []byte {
	number, offset, length := s.region.Load(), s.offset.Load(), s.length.Load()
	if number == anywhere {
		return nil
	}
	r := ep.regions.find(number)
	if r == nil || offset > uint64(len(r.bytes)) || length > uint64(len(r.bytes))-offset {
		panic(&transport.ProtocolError{Peer: rank,
			Text: fmt.Sprintf("it shows %d bytes at %d of region %d, which does not have them", length, offset, number)})
	}
	return r.bytes[offset : offset+length : offset+length]
}

// heapRegions makes the regions of goroutine ranks with an arena on the heap. The first rank that
// asks for a region makes it.
func heapRegions(ranks int) makeRegion {
	var (
		mu   interleave.Mutex
		made = map[uint64]*heapRegion{} // regions that not all ranks have asked for
	)
	return func(number uint64, size int) (regionMemory, error) {
		mu.Lock()
		defer mu.Unlock()

		r := made[number]
		if r == nil {
			r = &heapRegion{ranks: int64(ranks)}
			r.memory, r.err = memory.Aligned(size)
			made[number] = r
		}

		if r.asked++; r.asked == ranks {
			delete(made, number)
		}
		if r.err != nil {
			return nil, &transport.AllocationFailedError{RequestedBytes: size, Message: r.err.Error()}
		}
		return r, nil
	}
}

// heapRegion is a region on the heap, which all ranks share.
type heapRegion struct {
	memory  []byte
	err     error // why memory could not be allocated
	ranks   int64
	asked   int // guarded by heapRegions
	leavers interleave.Int64
}

func (r *heapRegion) bytes() []byte  { return r.memory }
func (r *heapRegion) leave()         { r.leavers.Add(1) }
func (r *heapRegion) isUnused() bool { return r.leavers.Load() == r.ranks }
func (r *heapRegion) discard()       {}
func (r *heapRegion) close() error   { return nil }
