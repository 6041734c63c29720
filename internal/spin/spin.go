// Package spin holds the processor's hint for loops that poll a word of memory.
package spin
