//go:build !interleave

package interleave

import (
	"context"
	"runtime"
	"time"
)

// IsOn reports whether the build tag interleave is set.
const IsOn = false

// LookEvery is how many turns a polling loop makes from one look at other words to the next.
const LookEvery = 64

// Chunk is how many bytes a rank reduces or copies from one look at the group to the next.
const Chunk = 256 << 10

// Fact returns what measure finds out about this machine. Under a seed it returns a constant
// instead, and measures nothing.
func Fact[T any](measure func() T, _ T) T { return measure() }

// Go starts a goroutine.
func Go(f func()) { go f() }

// Processors returns how many goroutines run at the same time.
func Processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// Moment returns a time on the clock that all processes of a machine share, in nanoseconds. Under a
// seed it is the number of steps so far.
func Moment() int64 { return time.Now().UnixNano() }

// Compute computes for a time that is too short for a sleep.
func Compute(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// PollEnds is called once in each turn of a loop that reads words until they change. It reports
// whether the loop must end; only a seed says so.
func PollEnds() bool { return false }

// Step comes before a send to a channel, and before its close: a step under a seed.
func Step() {}

// Receive receives from a channel.
func Receive[A any](a <-chan A) { <-a }

// First receives from one of two channels, the first that is ready, and returns its number, from 0.
// A nil channel is never ready.
func First[A, B any](a <-chan A, b <-chan B) int {
	select {
	case <-a:
		return 0
	case <-b:
		return 1
	}
}

// FirstOfThree is First for three channels.
func FirstOfThree[A, B, C any](a <-chan A, b <-chan B, c <-chan C) int {
	select {
	case <-a:
		return 0
	case <-b:
		return 1
	case <-c:
		return 2
	}
}

// FirstOfFour is First for four channels.
func FirstOfFour[A, B, C, D any](a <-chan A, b <-chan B, c <-chan C, d <-chan D) int {
	select {
	case <-a:
		return 0
	case <-b:
		return 1
	case <-c:
		return 2
	case <-d:
		return 3
	}
}

// Timer is a time.Timer.
type Timer = time.Timer

// AfterFunc calls f in a goroutine of its own once d has passed.
func AfterFunc(d time.Duration, f func()) *Timer { return time.AfterFunc(d, f) }

// NewTimer returns a timer that sends to its channel once d has passed.
func NewTimer(d time.Duration) *Timer { return time.NewTimer(d) }

// After returns the channel of a new timer.
func After(d time.Duration) <-chan time.Time { return time.After(d) }

// Sleep returns once d has passed.
func Sleep(d time.Duration) { time.Sleep(d) }

// WithTimeout is context.WithTimeout.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// AfterContext calls f in a goroutine of its own once ctx has ended, unless stop is called before.
func AfterContext(ctx context.Context, f func()) (stop func() bool) { return context.AfterFunc(ctx, f) }
