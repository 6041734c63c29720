// Package exporter shows the metrics of a job to others while it runs, for `goccl run --metrics`.
//
// # Model
//
// An [Exporter] has one of three places: a Unix socket or a loopback address, at which it answers
// requests of HTTP for /metrics, or a file, which it replaces every few seconds and when it is
// closed. Start makes the place, so that all that can fail fails before the job starts.
//
// Readers cannot hold the exporter: every connection has a time limit, their number has one too,
// and Close waits for none of them.
package exporter
