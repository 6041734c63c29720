package shm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/goccl/goccl/transport"
	"golang.org/x/sys/unix"
)

// Methods that may be called at any time survive vanished memory, on any goroutine. The group has
// then failed for that reason.
func TestEndpointOutlivesItsMemory(t *testing.T) {
	for name, use := range map[string]func(*mapped){
		"Fail":        func(m *mapped) { m.Fail(&transport.Failure{Kind: transport.FailureAborted, Text: "late"}) },
		"Failure":     func(m *mapped) { m.Failure() },
		"Fingerprint": func(m *mapped) { m.Fingerprint(0) },
		"Reject":      func(m *mapped) { m.Reject(1, "no") },
		"Withdraw":    func(m *mapped) { m.Withdraw() },
		"Close": func(m *mapped) {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			useOwnDirectory(t)
			ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
			if err != nil {
				t.Fatal(err)
			}
			m := ep.(*mapped)
			ticker := make(chan struct{})
			if err := unix.Ftruncate(m.segment.fd, 0); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(0, func() { // as a call's ticker does
				m.group.Wake(0)
				close(ticker)
			})
			<-ticker
			done := make(chan struct{})
			go func() {
				defer close(done)
				use(m)
			}()
			<-done
			if f := m.Failure(); f == nil || f.Kind != transport.FailureAborted || !errors.Is(f.Cause, errGone) {
				t.Errorf("the failure is %+v, want that the memory is gone", f)
			}
			if !m.Failed() {
				t.Error("the group lives")
			}
			if err := errors.Join(m.Close(), m.Free(), m.Free()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Only faults in the endpoint's memory count as vanished memory.
func TestVanished(t *testing.T) {
	useOwnDirectory(t)
	ep, err := Join(context.Background(), Job{Name: "job", Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := ep.(*mapped)
	region, err := m.Region(100)
	if err != nil {
		t.Fatal(err)
	}
	at := func(p *byte) error { return m.Vanished(fault(p)) }
	for name, c := range map[string]struct {
		err  error
		gone bool
	}{
		"the arena":       {at(&m.arena.bytes(5, 1)[0]), true},
		"a region":        {at(&region.Bytes()[99]), true},
		"other memory":    {at(new(byte)), false},
		"no fault at all": {m.Vanished("mine"), false},
	} {
		if errors.Is(c.err, errGone) != c.gone || !c.gone && c.err != nil {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if err := errors.Join(region.Free(), m.Close(), m.Free()); err != nil {
		t.Error(err)
	}
}
