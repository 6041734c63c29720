// Package handshake lets two processes that are connected by a network prove to each other that
// they know a secret, before either decodes anything that the other has sent.
//
// # Model
//
// The process that dials says what the connection is for, its Opening, with a random number. The
// one that listens answers with another. Then the dialer proves that it knows the secret, by a
// keyed hash (HMAC with SHA-256) of its role and of all that was sent so far, and after that the
// listener:
//
//	dialer                                   listener
//	opening: magic, purpose, nonce ────────►
//	                                ◄──────── magic, nonce
//	HMAC(secret, "dialer", both) ──────────►  compared in constant time
//	                                ◄──────── accepted, HMAC(secret, "listener", both)
//
// So a proof is of use to nobody else: it holds for one role, one purpose, one pair of ranks, and
// the random numbers of one connection. All messages have a fixed length. A listener tells a dialer
// with another secret that it has another one, since it then fails at once, and nothing else.
//
// The empty secret is a secret that everybody knows.
//
// The handshake is about who is at the other end. It does not protect what is sent afterwards from
// those who can read or change the packets of the network. A Wrap does so, such as TLS, if the
// program has one and both sides say so. Then they prove once more that they know the secret, by a
// hash of what only the two ends of that connection have in common (its binding): so nobody is in
// between, whoever has given them certificates.
//
// # Concurrency
//
// All functions and methods may be called concurrently. A Listener makes handshakes at the same
// time, but not more than maxPending: then the host that has most of them loses its oldest for the
// next, so that neither silent nor very many peers keep others from coming. Each has handshakeTime,
// and sends fewer bytes than a packet holds.
//
// # Failure
//
// A failed handshake closes its connection. A Listener goes on, and counts it: see Strangers. Dial
// returns an error for which IsFinal holds if it makes no sense to dial again, and otherwise the
// error of the network.
package handshake
