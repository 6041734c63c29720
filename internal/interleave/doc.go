// Package interleave has the words, locks, waits and goroutines through which ranks meet.
//
// # Model
//
// In a normal build its types are those of sync and sync/atomic, and its functions are calls of
// the standard library that the compiler inlines.
//
// With the build tag interleave each of them is a step. [Run] runs a program whose goroutines
// take steps one at a time: at each step a number that is drawn from a seed chooses which
// goroutine goes on. The same seed gives the same steps, on every run and machine.
//
//   - A goroutine that [Go] or [AfterFunc] starts belongs to the program.
//   - A goroutine that polls, by [PollEnds], is not chosen until a word that it has read has
//     changed, or its poll is ended.
//   - Time stands still while a goroutine can go on. It advances to what is due next when none
//     can, or, if the options say so, when that is drawn.
//   - Goroutines of one label are a process that can be killed or stopped. The system call by which
//     it sleeps on a word of shared memory is a step.
//   - A goroutine that waits for what this package does not know, such as a channel, a
//     sync.WaitGroup or a time.Sleep of the program, lets others go on. Once its wait has ended it
//     runs until its next step. No seed orders what it does there.
//   - A program in which no goroutine can go on, and nothing is due, has come to a standstill. Run
//     says so at once, with what each goroutine waits for.
//
// [Shrink] looks for the few choices that make a run fail, [Picture] shows its steps, and [Explore]
// takes all orders of a small program that have few preemptions.
//
// Packages that ranks meet in use this package instead of sync, sync/atomic, the timers of time,
// and the timeouts of context.
//
// # Concurrency
//
// In a normal build as the standard library says. With the tag, one Run at a time. Outside of Run
// everything works as in a normal build. While a Run is on, no goroutine that it has not started
// may use this package: in a test beside it such a call panics.
//
// # Failure
//
// Run reports a standstill, a program without end, a panic, goroutines or timers that the program
// has not ended, and a call of a goroutine that the program has started by a go statement. Then it
// ends the goroutines one by one: what they have deferred runs, and ends where it would have to
// wait. Locks that they have held are free for the next Run.
//
// A goroutine that waits for a lock of package sync, or for what is no part of the program, keeps
// all others from going on, as testing/synctest says. Run reports a lock after a second, anything
// else after 20 s, also a goroutine that runs without a step, and leaves the goroutines where they
// are.
package interleave
