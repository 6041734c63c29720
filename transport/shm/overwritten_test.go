package shm

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/goccl/goccl/internal/interleave"
	"github.com/goccl/goccl/transport"
)

// If another program has overwritten the words by which ranks find each other's messages, results and
// failures, the methods that read them return a *ProtocolError or panic with one. The caller recovers
// the panic. (Package ccl: TestOverwrittenMemory.)
func TestOverwrittenMemory(t *testing.T) {
	const n = 3
	message := transport.Message{Bytes: make([]byte, 16), Total: 64}
	values := []uint64{1, 8, 127, 1 << 20, 1 << 62, 1<<63 - 128, 1 << 63, math.MaxUint64, math.MaxUint64 - 127}
	for name, c := range map[string]struct {
		word func(ep *endpoint) *interleave.Uint64
		use  func(ep []*endpoint) error
	}{
		"P2P, put": {p2pWord(0, 1), func(ep []*endpoint) error {
			_, _, err := ep[0].p2p.TryPut(1, &message)
			return err
		}},
		"P2P, drained": {p2pWord(0, 1), func(ep []*endpoint) error { ep[0].p2p.TryDrained(1); return nil }},
		"P2P, next": {p2pWord(0, 1), func(ep []*endpoint) error {
			_, _, err := ep[1].p2p.TryNext(0)
			return err
		}},
		"P2P, take": {p2pWord(0, 1), func(ep []*endpoint) error { ep[1].p2p.Take(0); return nil }},
		"put": {callWord(0, 1), func(ep []*endpoint) error {
			_, err := ep[0].Put(1, &message)
			return err
		}},
		"drain": {callWord(0, 1), func(ep []*endpoint) error { return ep[0].Drain(1) }},
		"next": {callWord(0, 1), func(ep []*endpoint) error {
			_, err := ep[1].Next(0)
			return err
		}},
		"take": {callWord(0, 1), func(ep []*endpoint) error { ep[1].Take(0); return nil }},
	} {
		for _, v := range values {
			eps := heapEndpoints(t, n)
			c.word(eps[0]).Store(v)
			wantProtocolError(t, fmt.Sprintf("%s: %#x", name, v), func() error { return c.use(eps) })
		}
	}

	for name, overwrite := range map[string]func(h *slotHeader){
		"total":       func(h *slotHeader) { h.total = math.MaxUint64 },
		"total, min":  func(h *slotHeader) { h.total = 1 << 63 },
		"short total": func(h *slotHeader) { h.total = 15 },
		"n":           func(h *slotHeader) { h.n = math.MaxUint32 },
	} {
		eps := heapEndpoints(t, n)
		if _, ok, err := eps[0].p2p.TryPut(1, &message); !ok || err != nil {
			t.Fatal(ok, err)
		}
		h, _ := eps[0].slot(int(p2pWord(0, 1)(eps[0]).Load()), 0)
		overwrite(h)
		wantProtocolError(t, "slot: "+name, func() error {
			_, _, err := eps[1].p2p.TryNext(0)
			return err
		})
	}

	for _, r := range []result{{1, 0}, {0, 1 << 20}, {math.MaxUint64, math.MaxUint64}, {0, 1 << 63}} {
		eps := heapEndpoints(t, n)
		eps[0].stage(0).result[0] = r
		wantProtocolError(t, fmt.Sprintf("result: %v", r), func() error { eps[1].Result(0); return nil })
	}

	eps := heapEndpoints(t, n)
	at[interleave.Uint64](eps[0].arena, eps[0].layout.free).Store(1<<63 + 5)
	wantProtocolError(t, "pool", func() error {
		_, _, err := eps[0].p2p.TryPut(1, &message)
		return err
	})
}

// A group has failed as well if its fail word holds a value that no rank writes.
func TestOverwrittenFailure(t *testing.T) {
	for _, v := range []uint64{4, 2, 1 << 63, math.MaxUint64} { // rank 1 has not failed
		eps := heapEndpoints(t, 3)
		at[interleave.Uint64](eps[0].arena, eps[0].layout.words).Store(v)
		rank := 0
		if v == 2 {
			rank = 1
		}
		wantProtocolError(t, fmt.Sprintf("fail: %#x", v), func() error { return eps[rank].Failure().Cause })
	}
}

// A failure counts as the failure of the rank whose record holds it if the record names no rank. It may be passed on
// from another rank.
func TestOverwrittenRecord(t *testing.T) {
	for by, want := range map[int]int{65000: 1, 3: 1, 1: 1, 2: 2} {
		ep := heapEndpoints(t, 3)[0]
		all := records{ep.arena, ep.layout}
		all.Store(1, &transport.Failure{Kind: transport.FailureAborted, By: by})
		if got := all.Load(1).By; got != want {
			t.Errorf("the failure of rank 1 by rank %d is by rank %d", by, got)
		}
	}
}

// A buffer in a region that this rank does not have leads to a *ProtocolError.
func TestOverwrittenRegion(t *testing.T) {
	eps := heapEndpoints(t, 2)
	for _, number := range []uint64{0, 1, 1 << 63, math.MaxUint64} {
		eps[1].shown(1).send.region.Store(number)
		wantProtocolError(t, fmt.Sprintf("region %d", number), func() error {
			_, _ = eps[0].Buffers(1)
			return nil
		})
	}
}

func heapEndpoints(t *testing.T, ranks int) (eps []*endpoint) {
	all, err := NewHeap(ranks, SmallestGeometry(ranks))
	if err != nil {
		t.Fatal(err)
	}
	for _, ep := range all {
		eps = append(eps, ep.(*endpoint))
		if err := eps[len(eps)-1].Begin(&transport.Arrival{Ctx: t.Context(), Seq: 1}); err != nil {
			t.Fatal(err)
		}
	}
	return eps
}

func p2pWord(from, to int) func(ep *endpoint) *interleave.Uint64 {
	return func(ep *endpoint) *interleave.Uint64 { return ep.pair(ep.layout.p2pPairs, from, to) }
}

func callWord(from, to int) func(ep *endpoint) *interleave.Uint64 {
	return func(ep *endpoint) *interleave.Uint64 { return ep.pair(ep.layout.pairs, from, to) }
}

func wantProtocolError(t *testing.T, what string, f func() error) {
	t.Helper()
	err := func() (err error) {
		defer func() {
			if v := recover(); v != nil {
				err, _ = v.(error)
			}
		}()
		return f()
	}()
	if _, ok := errors.AsType[*transport.ProtocolError](err); !ok {
		t.Errorf("%s: %v, want a *ProtocolError", what, err)
	}
}
