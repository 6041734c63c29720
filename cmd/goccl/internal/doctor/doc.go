// Package doctor finds out what a machine allows for ranks as goroutines and as
// processes: it is what stands behind `goccl doctor`.
//
// # Model
//
// Everything it says is a Finding with a Verdict. Machine and Processes look at what
// Linux shows in /proc and /sys, under a root that tests replace, and at /dev/shm.
// What ranks as processes need of the kernel is tried, each thing by itself, on files
// that are gone afterwards; and then a job of two ranks meets, as jobs do, but that
// both are goroutines. Yardsticks has package measure take them.
//
// A problem is what keeps ranks, as goroutines or as processes, from working. What
// makes them slow, or is only missing, is a note.
//
// # Concurrency
//
// One call at a time, since it would disturb what another one times.
//
// # Failure
//
// Nothing here fails: what cannot be found out is unknown, and said to be.
package doctor
