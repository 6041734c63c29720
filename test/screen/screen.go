// Package screen is an output that tests can wait for.
//
// # Model
//
// A Screen keeps what processes or goroutines write to it. A test waits until it has a text.
package screen

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// Screen is an output. Any goroutine may write to it and read it; one at a time may wait.
type Screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

// New returns an empty screen.
func New() *Screen { return &Screen{more: make(chan struct{}, 1)} }

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

// String returns what was written.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Await waits until the screen has a text that many times, and fails the test after a minute.
func (s *Screen) Await(t testing.TB, text string, times int) {
	t.Helper()
	for late := time.After(time.Minute); strings.Count(s.String(), text) < times; {
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("waited for %d times %q, and got\n%s", times, text, s)
		}
	}
}
