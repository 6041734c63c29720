//go:build interleave

package interleave

import (
	"fmt"
	"strings"
	"time"
)

// How long a Run may take no step: on a lock of package sync, and otherwise.
var (
	lockPatience = time.Second
	patience     = 20 * time.Second
)

// watch sends a finding if the Run that begins takes no step for too long, because the goroutine
// whose turn it is waits for what package testing/synctest does not know, or runs all the time. It
// looks from outside of the bubble, where time is real.
func (s *scheduler) watch() (stuck <-chan *Finding, stop func()) {
	found, done := make(chan *Finding, 1), make(chan struct{})
	tick := time.NewTicker(lockPatience / 2)
	go func() {
		defer tick.Stop()
		since, last := time.Now(), -1
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}

			if now := s.progress(); now != last {
				since, last = time.Now(), now
			} else if f := s.findBlocked(time.Since(since)); f != nil {
				found <- f
				return
			}
		}
	}()
	return found, func() { close(done) }
}

// progress returns a number that each step changes.
//
//go:norace
func (s *scheduler) progress() int { return s.steps + s.picks + s.lastSteps }

// findBlocked returns what keeps the program from going on for so long, or nil.
//
//go:norace
func (s *scheduler) findBlocked(wait time.Duration) *Finding {
	t := s.current
	if t == nil {
		return nil
	}
	stacks := stackText()
	state := stateOf(stacks, t.id)
	isStuck := strings.HasPrefix(state, "sync.") && wait >= lockPatience && rest(stacks, s.away.bubble)
	if !isStuck && wait < patience {
		return nil
	}

	f := &Finding{Kind: Blocked, Text: fmt.Sprintf("%s (%s)", t, state)}
	if strings.HasPrefix(state, "run") {
		f.Kind = Busy
	}
	s.explain(f)
	return f
}

// rest reports whether no goroutine of a bubble runs, by the stacks of all.
func rest(stacks, bubble string) bool {
	for line := range strings.Lines(stacks) {
		_, state, _ := strings.Cut(line, " [")
		doesRun := strings.HasPrefix(state, "run") || strings.HasPrefix(state, "syscall")
		if doesRun && strings.HasPrefix(line, "goroutine ") && strings.Contains(line, bubble+"]") {
			return false
		}
	}
	return true
}

// stateOf returns what a goroutine does, such as sync.Mutex.Lock, by the stacks of all.
func stateOf(stacks string, id int64) string {
	_, rest, _ := strings.Cut("\n"+stacks, fmt.Sprintf("\ngoroutine %d [", id))
	state, _, _ := strings.Cut(rest, "]")
	state, _, _ = strings.Cut(state, ",")
	return strings.TrimSuffix(state, " (durable)")
}
