// Package goccl is collective communication for Go: torch.distributed's calls
// on goroutines and on processes, with algorithms as plug-ins and a ccl.yaml that
// chooses among them.
//
// This package is the manual's first page and holds the default configuration;
// programs import one of its rooms:
//
//   - [github.com/goccl/goccl/dist]: the front door, shaped like
//     torch.distributed: Spawn, InitProcessGroup, AllReduce, Send, NewGroup, GetRank.
//   - [github.com/goccl/goccl/ccl]: the explicit form without goroutine-local
//     state, and the contract for algorithms.
//   - [github.com/goccl/goccl/half]: floats of 16 bits, as elements of tensors.
//   - [github.com/goccl/goccl/ccl/ccltest]: the conformance suite for kernels.
//
// # Model
//
// A job is a number of ranks that run the same program. The ranks of a group
// call the same collectives in the same order; an algorithm, chosen by
// ccl.yaml, moves and folds the data. Messages go from one rank to one other, beside
// collectives.
//
// # Concurrency
//
// Ranks run side by side; one rank's collectives on one group follow each other, also
// those that it has begun and not yet waited for. Messages, and the collectives of
// different groups, may overlap.
//
// # Failure
//
// Mistakes and lost ranks are errors that name the culprit, on every rank that
// is concerned, and never a hang.
package goccl

import _ "embed"

// DefaultConfig is the configuration that holds where no other is given: the
// ccl.yaml at the root of the repository.
//
//go:embed ccl.yaml
var DefaultConfig []byte
