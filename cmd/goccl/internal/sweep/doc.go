// Package sweep runs a matrix of measurements that a file describes, keeps what is
// done, and makes a report of it: `goccl bench --sweep`.
//
// # Model
//
// A File says what is measured and how; docs/guides/benchmarking.md lists its keys. Its
// cells are the cases of a measure.Plan, each with all algorithms in it, since those
// take turns. A Store is a directory with a file for each cell that is done. It
// belongs to one File, configuration, machine and program, which its Fingerprint
// names: what was measured by others is not mixed in. A Report is one HTML document
// that refers to nothing outside of itself.
//
// # Concurrency
//
// A Store belongs to one process at a time; nothing looks after that.
//
// # Failure
//
// Reading a File is strict: what it does not know is a *ccl.ConfigError with the
// line, and the nearest name where one is wrong. A cell is either there as a whole or
// not at all, whatever interrupts the program. A Store of something else is an error
// that says in which respect.
package sweep
