package ccltest

import (
	"strings"
	"testing"

	"github.com/goccl/goccl/internal/launchenv"

	"github.com/goccl/goccl/ccl"
)

// A leak shows each stack once, with the number of its goroutines and the line of the kernel.
func TestLeakText(t *testing.T) {
	stop, never := make(chan struct{}), make(chan struct{})
	defer close(stop)
	s := subjectOf(ccl.CollAllReduce, before(func(c *ccl.Call) error {
		for range 1000 {
			go func() { <-stop }()
		}
		if c.Rank() == 0 {
			go func() {
				select {
				case <-stop:
				case never <- struct{}{}:
				}
			}()
		}
		return nil
	}))
	hangs(s)
	text := failure(leaks(s, poll, 3), checkNamed("Leaks"), "TestA/b")
	_, after, found := strings.Cut(text, "\ngoroutines that are left:\n")
	if !found {
		t.Fatal(text)
	}
	lines := strings.Split(after, "\n")
	want := []string{"  15000 goroutines, chan receive:", "stacks_test.go:18", "created by", "  5 goroutines, select:", "stacks_test.go:22", "created by"}
	for i, want := range want {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("line %d of\n%s\ndoes not contain %q", i+1, after, want)
		}
	}
	if len(lines) > 40 {
		t.Errorf("%d lines:\n%s", len(lines), after)
	}
}

// The stack of a goroutine has its state without its time, and ends with its creator.
func TestNewStack(t *testing.T) {
	s := newStack(launchenv.ParseStacks("goroutine 7 [select, 2 minutes, locked to thread]:\n" +
		"example.com/mine.(*ring).run(0xc000, {0x1, 0x2})\n\t/home/me/mine/ring.go:33 +0x1d\n" +
		"created by example.com/mine.Start in goroutine 1\n\t/home/me/mine/ring.go:12 +0x44\n")[0])
	if s.state != "select" || len(s.frames) != 2 ||
		s.frames[0] != (frame{"example.com/mine.(*ring).run", "/home/me/mine/ring.go", 33}) ||
		s.frames[1] != (frame{"created by example.com/mine.Start", "/home/me/mine/ring.go", 12}) {
		t.Errorf("%+v", s)
	}
	if !s.frames[0].kernels() || (frame{"runtime.gopark", "proc.go", 1}).kernels() || (frame{suite + "leaks", "resources.go", 1}).kernels() {
		t.Error("a frame is taken for the other kind")
	}
}
