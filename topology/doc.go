// Package topology says how the ranks of a group are arranged and who is whose
// neighbour. It is values and arithmetic only: it measures nothing, opens
// nothing and starts nothing.
//
// # Model
//
// A [Topology] arranges count ranks on a grid W wide and H high. Ranks are
// numbered row by row (row-major, the last dimension fastest), so that
//
//	rank = y*W + x
//
// East is +x, West is -x, South is +y, North is -y. Six ranks, 3 wide and 2
// high:
//
//	        North
//	      0   1   2
//	West              East
//	      3   4   5
//	        South
//
// The [Kind] says what lies beyond the edge:
//
//   - [Ring1D]: one row of count ranks, closed to a ring. East is the next rank,
//     West the previous one; there is no North and no South.
//   - [Torus2D]: every row and every column is closed to a ring.
//   - [Mesh2DNoWrap]: nothing; ranks at an edge have fewer neighbours.
//
// A rank is never its own neighbour. Where a ring has a single rank (a group of
// one, a torus with an extent of 1) there is no neighbour in its two directions,
// so that no kernel sends a message to itself by accident. Where a ring has two
// ranks, both directions lead to the same peer: a kernel that exchanges in both
// directions then has two messages under way between the same two ranks, and
// must not tell them apart by the peer alone. On a mesh of extent 2 the peer
// lies in one direction only.
//
// A [Ring] is the arithmetic of ring algorithms: next, previous, and the blocks
// of a buffer counted from a rank's own. It runs through all ranks in rank
// order and is the same for every Kind.
//
// A [Tree] is the arithmetic of tree algorithms: parent, children, depth, and in
// which child's subtree a rank is, in a k-ary or binomial tree with any rank as its
// root. It too is the same for every Kind. [TwoTrees] is a pair of binary trees, and the
// steps in which a pipeline runs over both.
//
// # Concurrency
//
// All values are immutable once made. Every function and method may be called
// from any number of goroutines at once. None blocks, and none but [New],
// [Kinds] and those that make text allocates.
//
// # Failure
//
// [ParseKind] and [New] judge what users write in a configuration, and return
// [*KindError] or [*ExtentsError]. The methods that take a rank, a position or a
// direction have a documented precondition instead and panic when it is broken:
// a rank outside its group is a defect in the program, not in its input.
package topology
