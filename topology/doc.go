// Package topology arranges the ranks of a group and computes their neighbours. It has
// values and arithmetic only: it does not measure a machine, and starts nothing.
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
// The [Kind] determines what lies beyond the edge:
//
//   - [Ring1D]: one row of count ranks, closed to a ring. East is the next rank, West the
//     previous one; no rank has a neighbour in the North or South.
//   - [Torus2D]: every row and every column is closed to a ring.
//   - [Mesh2DNoWrap]: nothing; ranks at an edge have fewer neighbours.
//
// A rank is never its own neighbour. A ring of a single rank (a group of one, a torus with an
// extent of 1) has no neighbours in its two directions, so that no kernel sends a message to
// itself by accident. In a ring of two ranks both directions lead to the same peer: a kernel
// that exchanges in both directions then has two messages in flight between the same two
// ranks, and cannot tell them apart by the peer alone. On a mesh of extent 2 the peer lies
// in one direction only.
//
// A [Ring] is the arithmetic of ring algorithms: next, previous, and the blocks of a buffer
// counted from a rank's own. It connects all ranks in rank order and is the same for every
// Kind.
//
// A [Tree] is the arithmetic of tree algorithms: parent, children, depth, and the child whose
// subtree contains a rank, in a k-ary or binomial tree with any rank as its root. It is also
// the same for every Kind. [TwoTrees] is a pair of binary trees, with the steps of a pipeline
// over both.
//
// All values are immutable and safe for concurrent use. No function blocks, and only [New],
// [Kinds] and those that format text allocate.
//
// # Failure
//
// [ParseKind] and [New] check users' configurations and return [*KindError] or
// [*ExtentsError]. The methods that take a rank, a position or a direction have a documented
// precondition and panic if it is violated: a rank outside its group is a bug of the program.
package topology
