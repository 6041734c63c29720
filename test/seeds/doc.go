// Package seeds runs jobs under seeds: package interleave chooses the order of all steps of their
// ranks.
//
// # Model
//
// A job is drawn from a seed: its ranks, transport, calls and faults. The same seed draws the same
// job and the same steps. Jobs are of several kinds, one file each, and each kind has an auditor,
// which says what is wrong with how a job has ended. Corners are the smallest: each is about one
// thing that ranks do at once.
//
// # Concurrency
//
// One job runs at a time. Tests need the build tag interleave; make seeds sets it.
//
// # Failure
//
// A job that the auditor or package interleave finds wrong fails the test, with the command that
// runs it again.
package seeds
