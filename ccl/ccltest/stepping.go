package ccltest

import (
	"runtime"
	"sync/atomic"

	"github.com/goccl/goccl/transport"
)

// stepping is an endpoint that calls step before everything its rank waits for or
// reads from others, and before its body. Where ranks run each other's bodies step is called by any
// goroutine.
type stepping struct {
	transport.Endpoint
	step    func()
	memory  transport.Memory
	staging transport.Staging
}

func newStepping(ep transport.Endpoint, step func()) transport.Endpoint {
	s := &stepping{Endpoint: ep, step: step}
	if m := ep.Memory(); m != nil {
		s.memory = &steppingMemory{m, step}
	}
	if g := ep.Staging(); g != nil {
		s.staging = &steppingStaging{g, step}
	}
	return s
}

func (s *stepping) Enter(e *transport.Entry) (transport.Role, error) {
	s.step()
	role, err := s.Endpoint.Enter(e)
	s.step()
	return role, err
}

func (s *stepping) Claim() (rank int, ok bool) {
	s.step()
	return s.Endpoint.Claim()
}

func (s *stepping) Release(failed bool) error {
	s.step()
	return s.Endpoint.Release(failed)
}

func (s *stepping) Complete() error {
	s.step()
	return s.Endpoint.Complete()
}

func (s *stepping) Payload(rank, n int) []byte {
	s.step()
	return s.Endpoint.Payload(rank, n)
}

func (s *stepping) Put(to int, m *transport.Message) (n int, err error) {
	s.step()
	return s.Endpoint.Put(to, m)
}

func (s *stepping) Drain(to int) error {
	s.step()
	return s.Endpoint.Drain(to)
}

func (s *stepping) Next(from int) (view transport.Message, err error) {
	s.step()
	return s.Endpoint.Next(from)
}

func (s *stepping) Take(from int) {
	s.step()
	s.Endpoint.Take(from)
}

func (s *stepping) Memory() transport.Memory   { return s.memory }
func (s *stepping) Staging() transport.Staging { return s.staging }

type steppingMemory struct {
	transport.Memory
	step func()
}

func (s *steppingMemory) Buffers(rank int) (send, recv []byte) {
	s.step()
	return s.Memory.Buffers(rank)
}

type steppingStaging struct {
	transport.Staging
	step func()
}

func (s *steppingStaging) Stage(piece []byte) error {
	s.step()
	return s.Staging.Stage(piece)
}

func (s *steppingStaging) Staged(rank, n int) []byte {
	s.step()
	return s.Staging.Staged(rank, n)
}

func (s *steppingStaging) Share(lo, hi int) error {
	s.step()
	return s.Staging.Share(lo, hi)
}

func (s *steppingStaging) Shared(rank int) (lo, hi int, result []byte) {
	s.step()
	return s.Staging.Shared(rank)
}

// delays returns a function that gives way to others now and then, as seed says.
func delays(seed uint64) func() {
	var calls atomic.Uint64
	return func() {
		h := mix(seed + calls.Add(1))
		if h%4 == 0 {
			yield(int(h >> 32 % 20))
		}
	}
}

func yield(times int) {
	for range times {
		runtime.Gosched()
	}
}

// mix makes numbers that lie close to each other lie far apart (the finalizer of
// SplitMix64, S. Vigna).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
