// Package goroutine stores a value per goroutine, which takes a few nanoseconds to look
// up, and recognises goroutines by the profiler labels they inherited.
//
// # Model
//
// A [Local] holds at most one pointer per goroutine. A goroutine can set, read
// and delete only its own value. Values are keyed by the runtime's goroutine ids, which
// are never reused. A goroutine that ends without Delete leaks its entry.
//
// The ids come from github.com/petermattis/goid, which reads a field of a
// private structure of the runtime. Before the first value is set, its result
// is compared with the text of runtime.Stack; if they differ, the text is
// parsed from then on.
//
// A [Label] is the identity of a goroutine's set of profiler labels. Goroutines
// inherit it from the goroutine that starts them. Labels can only be compared.
//
// # Concurrency
//
// All methods may be called by any number of goroutines at once. [Local.Get]
// takes no lock; Set and Delete hold a lock for a constant time on average.
package goroutine
