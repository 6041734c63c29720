// Package goccl is collective communication for Go: torch.distributed's calls
// on goroutines, on processes and on several nodes, with algorithms as plug-ins and a
// ccl.yaml that chooses among them.
//
// This package holds the default configuration; programs import one of these:
//
//   - [github.com/goccl/goccl/dist]: torch.distributed's interface:
//     Spawn, InitProcessGroup, AllReduce, Send, NewGroup, GetRank.
//   - [github.com/goccl/goccl/ddp]: data parallel training.
//   - [github.com/goccl/goccl/partition], [github.com/goccl/goccl/primitive]: tensors
//     that live on many workers, and operators that move them.
//   - [github.com/goccl/goccl/ccl]: the explicit form without goroutine-local
//     state, and the contract for algorithms.
//   - [github.com/goccl/goccl/ccl/config]: ccl.yaml.
//   - [github.com/goccl/goccl/ccl/ccltest]: the conformance suite for kernels.
//   - [github.com/goccl/goccl/half]: 16-bit floats as elements of tensors.
//   - [github.com/goccl/goccl/topology]: rings, trees and grids as arithmetic.
//   - [github.com/goccl/goccl/launch]: ranks as processes that a program starts.
//   - [github.com/goccl/goccl/transport]: the contract of transports.
//   - [github.com/goccl/goccl/transport/mpi]: several nodes, by one import.
//
// # Model
//
// A job is a number of ranks that run the same program. The ranks of a group
// call the same collectives in the same order; an algorithm, chosen by
// ccl.yaml, moves and reduces the data. Messages between two ranks are independent of
// collectives.
//
// # Concurrency
//
// Ranks run in parallel. One rank's collectives on one group run one after the other,
// including asynchronous ones. Messages, and the collectives of different groups, may
// overlap.
//
// # Failure
//
// Mistakes and lost ranks are errors that name the culprit on every affected rank; calls
// do not hang.
package goccl

import _ "embed"

//go:embed ccl.yaml
var defaultConfig string

// DefaultConfig returns the text of the default configuration, the ccl.yaml at the root of
// the repository. It applies where a program has no other.
func DefaultConfig() string { return defaultConfig }
