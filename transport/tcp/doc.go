// Package tcp connects processes of one or several nodes by TCP, without any library but Go's.
//
// # Model
//
// The endpoints are those of package transport/internal/packet: copies of what other ranks have
// published, which packets bring up to date. Packets between two processes go by one connection.
// Long ones are written from where they lie, and read to where they go. The ranks of a node also
// join a segment of transport shm, which Linux alone has.
//
// On Linux the connections are taken out of Go's poller: who waits reads them without waiting at
// first. After that, and while ranks compute, one goroutine waits in the poller for all of them.
// Connections that are not the operating system's, and those of other systems, have two goroutines
// each, and copy.
//
// # Concurrency
//
// This package has nothing that a program calls.
//
// # Failure
//
// The end of a connection is the death of its process, unless that has left before. What the
// process has sent is handled first. A host that is gone ends no connection. The kernel asks for it
// by a second connection, on which nothing is sent (connections): there the answer comes from the
// other kernel, also for a process that is stopped or does not read. Without a second connection
// only a host is missed to which nothing is on its way.
package tcp
