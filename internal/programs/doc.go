// Package programs makes random programs for the ranks of a job, and checks what they
// compute: tests run them on goroutines and on processes.
//
// # Model
//
// A [Program] is drawn from a seed: the same on every rank, wherever it runs. It makes
// groups that overlap, by NewGroup and by Split, of the first group and of each other,
// and closes them; in them it makes every collective there is, of many types,
// operations, lengths and algorithms, also where ranks bring unlike lengths; and beside
// these it sends messages. Calls are made, or begun and waited for later, each rank as
// it likes. The numbers are such that every order of operations gives the same result,
// which the program knows: it compares bits, and looks also at what must stay as it is.
//
// A program is a sequence of events, and each rank does its own part of one after the
// other. So that it cannot hang, what an event waits for is done by parts of the same
// event or of earlier ones.
//
// # Concurrency
//
// Each rank has one goroutine that calls [Program.Run].
//
// # Failure
//
// Run returns the first error of a call, or what is wrong with a result, with the number
// and the text of the event. The other ranks are not told.
package programs
