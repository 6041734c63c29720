package topology

import "fmt"

// Topology is an immutable arrangement of ranks, made by New. It computes the table of all
// neighbours once. Compare topologies with Equal: == compares pointers.
type Topology struct {
	kind      Kind
	w, h      int
	neighbors []Neighbors // by rank
}

// New arranges count ranks, 1 to MaxCount.
//
// A ring has no extents: w and h must be zero. A torus or a mesh is w wide and h
// high, and w*h must be count; with w and h both zero it is a square, and count
// must be a square number. New rounds and ignores nothing: arguments that do not
// fit are an *ExtentsError. An unknown kind is a *KindError.
func New(kind Kind, count, w, h int) (*Topology, error) {
	if !kind.known() {
		return nil, &KindError{Name: kind.String()}
	}
	width, height, problem := extents(kind, count, w, h)
	if problem != "" {
		return nil, &ExtentsError{Kind: kind, Count: count, W: w, H: h}
	}

	t := &Topology{kind: kind, w: width, h: height, neighbors: make([]Neighbors, count)}
	for rank := range t.neighbors {
		x, y := t.Coord(rank)
		t.neighbors[rank] = Neighbors{
			East:  t.at(x+1, y),
			West:  t.at(x-1, y),
			North: t.at(x, y-1),
			South: t.at(x, y+1),
		}
	}
	return t, nil
}

// at returns the rank at a position that may lie one step beyond an edge, or None. A
// ring is a torus of height 1.
func (t *Topology) at(x, y int) int {
	wrap := t.kind != Mesh2DNoWrap
	x, okX := onto(x, t.w, wrap)
	y, okY := onto(y, t.h, wrap)
	if !okX || !okY {
		return None
	}
	return t.Rank(x, y)
}

// onto maps i, at most one step outside, to 0..extent-1. With an extent of 1 that is the
// rank itself, which is not a neighbour.
func onto(i, extent int, wrap bool) (int, bool) {
	if 0 <= i && i < extent {
		return i, true
	}
	return (i + extent) % extent, wrap && extent > 1
}

// Kind returns the kind given to New.
func (t *Topology) Kind() Kind { return t.kind }

// Count returns the number of ranks, W times H.
func (t *Topology) Count() int { return len(t.neighbors) }

// W returns the width in ranks: the length of a row. A ring is one row.
func (t *Topology) W() int { return t.w }

// H returns the height in ranks: the number of rows, 1 for a ring.
func (t *Topology) H() int { return t.h }

// Equal reports whether t and u have the same kind and extents, and so the same neighbours.
// A ring of n is not equal to a torus of n by 1: an algorithm may support only one of them.
// Precondition: u is not nil.
func (t *Topology) Equal(u *Topology) bool {
	return t.kind == u.kind && t.w == u.w && t.h == u.h
}

// String returns kind, extents and size: "torus_2d 3x2 (6 ranks)", or
// "ring_1d (6 ranks)".
func (t *Topology) String() string {
	if t.kind == Ring1D {
		return fmt.Sprintf("%s (%s)", t.kind, ranks(t.Count()))
	}
	return fmt.Sprintf("%s %dx%d (%s)", t.kind, t.w, t.h, ranks(t.Count()))
}

func ranks(n int) string {
	if n == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", n)
}

// Neighbors returns the neighbours of rank in all four directions.
// Precondition: 0 <= rank < Count.
func (t *Topology) Neighbors(rank int) Neighbors {
	t.check(rank)
	return t.neighbors[rank]
}

// Neighbor returns the neighbour of rank in direction d; ok is false, and peer is
// None, if it has none. If q is the neighbour of p in direction d, then p is
// the neighbour of q in the opposite one.
// Preconditions: 0 <= rank < Count; d is one of the four constants.
func (t *Topology) Neighbor(rank int, d Direction) (peer int, ok bool) {
	return t.Neighbors(rank).Peer(d)
}

// Coord returns the position of rank: column x, 0 to W-1 from the West, and row
// y, 0 to H-1 from the North. Precondition: 0 <= rank < Count.
func (t *Topology) Coord(rank int) (x, y int) {
	t.check(rank)
	return rank % t.w, rank / t.w
}

// Rank returns the rank at column x and row y, the inverse of Coord.
// Preconditions: 0 <= x < W; 0 <= y < H.
func (t *Topology) Rank(x, y int) int {
	if x < 0 || x >= t.w || y < 0 || y >= t.h {
		panic(fmt.Sprintf("topology: no position (%d, %d) in %s", x, y, t))
	}
	return y*t.w + x
}

func (t *Topology) check(rank int) {
	if rank < 0 || rank >= len(t.neighbors) {
		panic(fmt.Sprintf("topology: no rank %d in %s", rank, t))
	}
}
