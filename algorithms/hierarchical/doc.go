// Package hierarchical provides the algorithm "hierarchical": two levels, for groups whose ranks
// are on several nodes. Import it for its side effect, which registers it.
//
// # Model
//
// The ranks of each node work through the memory that they share, and only the first rank of each
// node, its leader, exchanges data with other nodes. A vector therefore crosses between nodes once
// for each node and not once for each rank.
//
// An all-reduce reduces on each node to the leader, all-reduces among the leaders, and broadcasts
// on each node. A long one does so in up to four pieces: the nodes reduce and broadcast while the
// leaders wait for their network. The other collectives are made in the same way, whole.
//
// The calls on a node and among leaders are collectives of the engine (ccl.Level), whose algorithms
// the same ccl.yaml chooses, by the length of a piece; without a choice of its own they are by
// direct.
//
// A reduction goes in rank order on each node, then in the order of the nodes, if those calls go
// in rank order, as direct's do. With floating point it has other bits than the sequential
// reduction over all ranks, and the same ones on every rank and in every run.
//
// # Preconditions
//
// A group has two levels (see ccl.Call.Node). Other groups reject the algorithm; a rule with the
// condition nodes: "2-" leaves them to other rules.
//
// # Failure
//
// A failure of a call on one level is the failure of the whole group: its error names ranks of the
// whole group.
//
// Source: N. Karonis, B. de Supinski, I. Foster, W. Gropp, E. Lusk and J. Bresnahan, Exploiting
// Hierarchy in Parallel Computer Networks to Optimize Collective Operation Performance, IPDPS
// 2000.
package hierarchical
