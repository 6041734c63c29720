// Package sweep runs a matrix of measurements described by a file, stores the results,
// and makes a report: `goccl bench --sweep`.
//
// # Model
//
// A File describes the measurements; docs/guides/benchmarking.md lists its keys. Its cells are the
// cases of a measure.Plan, each with all algorithms, since those take turns. A Store is a directory
// with a file for each finished cell. It belongs to one File, configuration, machine and program,
// which its Fingerprint identifies, so that results of others are not mixed in. A Report is one
// self-contained HTML document. A cell that cannot be measured has a row that tells why; one that
// fails is not stored.
//
// # Concurrency
//
// A Store may be used by one process at a time; this is not checked.
//
// # Failure
//
// Reading a File is strict: an unknown key or value is a *config.Error with the
// line and the nearest valid name. A cell is written atomically. Opening the Store of
// another sweep is an error that names the difference.
package sweep
