// Package p2p sends and receives messages between two ranks, outside of collectives.
//
// # Model
//
// Each rank of a group has one [Engine] on top of the endpoint's transport.P2P. As in MPI, a
// receive without a message waits in the posted queue, and a message without a receive waits in
// the unexpected queue. A message and a receive match if source and tag agree; the first posted
// receive that matches gets the message. Then type and length are compared: if they differ, the
// receive fails and the message stays.
//
// # Concurrency
//
// All methods of an Engine may be called concurrently, except Init. A goroutine blocked on one
// transfer makes progress on all of the rank's transfers. If no caller is blocked, a background
// goroutine makes progress until no transfer is pending. Only one goroutine at a time does so,
// and data is copied under the engine's lock.
//
// # Failure
//
// A transfer that times out, or whose context ends, fails alone if the other rank has seen
// nothing of the message. Otherwise the group fails, since nothing else takes the message away
// from the other rank. A lost rank fails only the transfers that need it. However a send ends,
// it ends only when no rank can read its buffer any more. If shared memory vanishes, the group
// fails.
package p2p
