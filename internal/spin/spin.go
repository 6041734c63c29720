// Package spin holds the processor's hint for loops that poll a word of memory, and
// how long it takes.
package spin
