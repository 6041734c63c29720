// Package grid provides the algorithm "grid": an all-reduce by rows and then by
// columns, on a torus_2d or a mesh_2d_no_wrap. Import it for its side effect,
// which registers it.
//
// # Model
//
// Every message goes to a direct neighbour in the topology. The phases on a grid 3 wide and 2 high:
//
//	torus_2d               |   |   |      |   |   |
//	                       v   v   v      v   v   v
//	-> o -> o -> o ->      o   o   o      o   o   o      -> o -> o -> o ->
//	                       |   |   |      |   |   |
//	                       v   v   v      v   v   v
//	-> o -> o -> o ->      o   o   o      o   o   o      -> o -> o -> o ->
//	                       |   |   |      |   |   |
//	 reduce-scatter     reduce-scatter   all-gather         all-gather
//
//	mesh_2d_no_wrap
//
//	   o <- o <- o         o   o   o      o   o   o         o -> o -> o
//	                       ^              |
//	                       |              v
//	   o <- o <- o         o   o   o      o   o   o         o -> o -> o
//
//	     reduce              reduce       broadcast          broadcast
//
// On a torus the reduce-scatter of a row leaves each of its W ranks with one of W
// blocks. All ranks of a column have the same one, of their own rows; the ring of
// the column all-reduces it, and the row gathers the blocks. This is the 2D-torus
// all-reduce of H. Mikami, H. Suganuma, P. U-chupala, Y. Tanaka, Y. Kageyama:
// Massively Distributed SGD: ImageNet/ResNet-50 Training in a Flash, 2018. Every
// rank sends as much as around one ring of all, in 2(W-1) + 2(H-1) steps instead
// of 2(WH-1). Long vectors go in parts, one after the other.
//
// On a mesh every row is a pipeline that reduces Westwards, and the first column one
// that reduces Northwards. The result is complete in the corner and returns the way it
// came. A link carries the vector once in each direction, in chunks: chunk i comes in
// while chunk i-1 goes on. The links of the other columns are not used.
//
// An extent of 1 has no phases. On a torus of extent 2 both directions lead to the same
// peer; messages go to the next rank only, so that the two cannot be confused.
//
// Bits: each row is reduced first, then the rows' results. On a mesh both begin at the far
// end, the East and the South: the result is determined by the extents. On a torus each
// part is cut into W blocks, and each block into H; block d of block b is reduced around
// the rows beginning at column b, and the rows' results around the column beginning at row
// d: the result is determined by extents, count and chunk. Both are the same on all ranks
// and in all runs. For floating-point sums they may differ from each other, from ring's
// and from direct's.
//
// # Failure
//
// Kernels return the errors of their verbs, with the phase and the step. In a group of
// another topology no entry with this module can be chosen: resolving the configuration
// fails with a *config.Error that names the kinds that grid supports.
package grid
