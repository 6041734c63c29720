// Package spin provides the processor's hint for polling loops, and converts durations to
// numbers of hints.
package spin
