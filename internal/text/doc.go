// Package text reads and formats the names and numbers of configuration files and of error
// messages about them.
//
// # Model
//
// All functions are pure. [Quote] and [Cut] bound what an error message repeats of its input.
//
// # Concurrency
//
// All functions may be called concurrently.
//
// # Failure
//
// [Whole] returns the errors of package strconv; nothing else fails.
package text
