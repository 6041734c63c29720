// Package goroutine keeps a value for a goroutine, found again in a few
// nanoseconds, and recognises goroutines by the profiler labels they inherited.
//
// # Model
//
// A [Local] holds at most one pointer per goroutine. A goroutine sets, reads
// and deletes its own value only; there is no way to reach another's. Values
// are keyed by the runtime's goroutine ids, which are never used twice. A
// goroutine that ends without Delete leaves its entry behind.
//
// The ids come from github.com/petermattis/goid, which reads a field of a
// private structure of the runtime. Before the first value is set, its answer
// is checked against the text of runtime.Stack; if they differ, the text is
// parsed from then on.
//
// A [Label] is the identity of a goroutine's set of profiler labels. Goroutines
// inherit it from the goroutine that starts them. It is compared and never
// looked into.
//
// # Concurrency
//
// All methods may be called by any number of goroutines at once. [Local.Get]
// takes no lock and never waits; Set and Delete take a lock for a time that is
// constant on average.
package goroutine
