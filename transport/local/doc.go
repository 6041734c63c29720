// Package local connects the goroutine ranks of one process.
//
// # Model
//
// The ranks share an address space, so nothing is copied but what the algorithm
// copies: a window shows the users' own buffers, and a message is a pointer to
// the sender's memory, which the receiver reads before the sender goes on.
//
// There are two ways to wait. If the process has a core for every rank that it
// hosts, ranks poll each other's lines for a while and then park, and everyone
// runs its own part of a call. Otherwise a call of which any rank's part may be
// run by any other is run by the last rank that arrives, while the others sleep:
// polling would only take away the core of the rank that is waited for. Large
// calls get helpers, as many as there are cores.
//
// Groups that ranks form (transport.Groups) wait as the group does that they come from, and
// are made by the first member to come. Messages of lanes are pointers, too: therefore a
// rank whose group has failed has to withdraw before its memory is its own again.
//
// # Concurrency
//
// As the contract in package transport says: an endpoint belongs to its rank.
//
// # Failure
//
// As the contract says. Goroutines do not die alone: a lost peer is one whose
// endpoint was closed.
package local
