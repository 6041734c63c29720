// Package atomicfile replaces files: a reader sees the old file or the whole new one.
//
// # Model
//
// Replace writes a temporary file beside the old one and renames it. The name of a temporary file
// is made of a hash of the file's name, so that it is never too long, and of a random part. Its
// writer holds a lock on it until it has the final name. The system releases the lock of a process
// that dies, so the next Replace of the same file knows which temporary files nobody writes, and
// removes these. Where the system has no such locks, none is removed.
//
// # Concurrency
//
// Any number of goroutines and processes may replace a file at a time; the last one to rename wins.
package atomicfile
