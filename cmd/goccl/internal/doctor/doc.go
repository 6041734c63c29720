// Package doctor checks what a machine allows for ranks as goroutines and as
// processes, for `goccl doctor`.
//
// # Model
//
// Every result is a Finding with a Verdict. Machine and Processes read
// /proc and /sys, under a root that tests replace, and /dev/shm.
// Each kernel feature that processes need is tried by itself, on temporary files;
// then two goroutines join a job as processes do. Yardsticks measures with package
// measure.
//
// A problem keeps ranks, as goroutines or as processes, from working. A note is about
// something slow or missing.
//
// # Concurrency
//
// One call at a time: another one would disturb timings.
//
// # Failure
//
// No function fails: unknown facts are reported as such.
package doctor
