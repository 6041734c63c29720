package topology_test

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/topology"
)

var directions = []topology.Direction{topology.East, topology.West, topology.North, topology.South}

// offset is the law of the compass, written down once more as an oracle.
var offset = map[topology.Direction][2]int{
	topology.East:  {+1, 0},
	topology.West:  {-1, 0},
	topology.North: {0, -1},
	topology.South: {0, +1},
}

// opposite returns the direction that leads back: directions come in pairs.
func opposite(d topology.Direction) topology.Direction { return d ^ 1 }

func make2D(t *testing.T, kind topology.Kind, w, h int) *topology.Topology {
	t.Helper()
	top, err := topology.New(kind, w*h, w, h)
	require.NoError(t, err)
	return top
}

// each calls check with every topology of 1 to 64 ranks.
func each(t *testing.T, check func(t *testing.T, top *topology.Topology)) {
	for count := 1; count <= 64; count++ {
		ring, err := topology.New(topology.Ring1D, count, 0, 0)
		require.NoError(t, err)
		check(t, ring)
		for w := 1; w <= count; w++ {
			if count%w == 0 {
				check(t, make2D(t, topology.Torus2D, w, count/w))
				check(t, make2D(t, topology.Mesh2DNoWrap, w, count/w))
			}
		}
	}
}

// Ranks are row-major, the last dimension fastest.
func TestCoordinatesRoundTrip(t *testing.T) {
	each(t, func(t *testing.T, top *topology.Topology) {
		require.Equal(t, top.Count(), top.W()*top.H())
		rank := 0
		for y := range top.H() {
			for x := range top.W() {
				require.Equal(t, rank, top.Rank(x, y), "%v", top)
				gotX, gotY := top.Coord(rank)
				require.Equal(t, [2]int{x, y}, [2]int{gotX, gotY}, "%v rank %d", top, rank)
				rank++
			}
		}
		require.Equal(t, top.Count(), rank)
	})
}

// A neighbour is one step away; on rings the step is taken modulo the extent; a
// rank is never its own neighbour.
func TestNeighborsAreOneStepAway(t *testing.T) {
	each(t, func(t *testing.T, top *topology.Topology) {
		wrap := top.Kind() != topology.Mesh2DNoWrap
		for rank := range top.Count() {
			all := top.Neighbors(rank)
			for _, d := range directions {
				want := topology.None
				x, y := rank%top.W()+offset[d][0], rank/top.W()+offset[d][1]
				if wrap {
					x, y = (x+top.W())%top.W(), (y+top.H())%top.H()
				}
				if x >= 0 && x < top.W() && y >= 0 && y < top.H() && y*top.W()+x != rank {
					want = y*top.W() + x
				}
				peer, ok := top.Neighbor(rank, d)
				require.Equal(t, want, peer, "%v: %v of %d", top, d, rank)
				require.Equal(t, want != topology.None, ok, "%v: %v of %d", top, d, rank)
				require.Equal(t, want, all[d], "%v: %v of %d", top, d, rank)
			}
		}
	})
}

func TestNeighborsAreSymmetric(t *testing.T) {
	each(t, func(t *testing.T, top *topology.Topology) {
		for rank := range top.Count() {
			for _, d := range directions {
				if peer, ok := top.Neighbor(rank, d); ok {
					back, ok := top.Neighbor(peer, opposite(d))
					require.True(t, ok, "%v: %v of %d is %d, and there is no way back", top, d, rank, peer)
					require.Equal(t, rank, back, "%v: %v of %d is %d", top, d, rank, peer)
				}
			}
		}
	})
}

// walk goes from rank in direction d until it is back or at an edge, and returns
// the ranks it came through.
func walk(t *testing.T, top *topology.Topology, rank int, d topology.Direction) (path []int, closed bool) {
	t.Helper()
	path = []int{rank}
	for at := rank; ; {
		next, ok := top.Neighbor(at, d)
		if !ok || next == rank {
			return path, ok
		}
		require.Less(t, len(path), top.Count(), "%v: walking %v from %d never ends", top, d, rank)
		path = append(path, next)
		at = next
	}
}

func TestRingWalkVisitsEachRankOnce(t *testing.T) {
	for count := 1; count <= 64; count++ {
		top, err := topology.New(topology.Ring1D, count, 0, 0)
		require.NoError(t, err)
		require.Equal(t, [2]int{count, 1}, [2]int{top.W(), top.H()})
		for rank := range count {
			east, closed := walk(t, top, rank, topology.East)
			require.Equal(t, count > 1, closed)
			require.Len(t, east, count)
			west, _ := walk(t, top, rank, topology.West)
			require.Len(t, west, count)
			for i := range count {
				require.Equal(t, (rank+i)%count, east[i])
				require.Equal(t, (rank-i+count)%count, west[i])
			}
			_, north := top.Neighbor(rank, topology.North)
			_, south := top.Neighbor(rank, topology.South)
			require.False(t, north || south, "a ring has no North and no South")
		}
	}
}

func TestTorusRowsAndColumnsAreRings(t *testing.T) {
	each(t, func(t *testing.T, top *topology.Topology) {
		if top.Kind() != topology.Torus2D {
			return
		}
		for rank := range top.Count() {
			x, y := top.Coord(rank)
			row, closed := walk(t, top, rank, topology.East)
			require.Equal(t, top.W() > 1, closed, "%v", top)
			require.Len(t, row, top.W(), "%v", top)
			for i, r := range row {
				require.Equal(t, y*top.W()+(x+i)%top.W(), r, "%v", top)
			}
			column, closed := walk(t, top, rank, topology.South)
			require.Equal(t, top.H() > 1, closed, "%v", top)
			require.Len(t, column, top.H(), "%v", top)
			for i, r := range column {
				require.Equal(t, (y+i)%top.H()*top.W()+x, r, "%v", top)
			}
		}
	})
}

// edges counts pairs of neighbouring ranks; two ways to one peer count once.
func edges(top *topology.Topology) int {
	seen := map[[2]int]bool{}
	for rank := range top.Count() {
		for _, peer := range top.Neighbors(rank) {
			if peer != topology.None {
				seen[[2]int{min(rank, peer), max(rank, peer)}] = true
			}
		}
	}
	return len(seen)
}

func TestEdges(t *testing.T) {
	ringEdges := func(n int) int {
		if n <= 2 {
			return n - 1
		}
		return n
	}
	each(t, func(t *testing.T, top *topology.Topology) {
		w, h := top.W(), top.H()
		want := h*ringEdges(w) + w*ringEdges(h)
		if top.Kind() == topology.Mesh2DNoWrap {
			want = (w-1)*h + w*(h-1)
		}
		require.Equal(t, want, edges(top), "%v", top)
	})
}

// The two-rank ring hung an older system: both ways lead to the same peer.
func TestTwoRankRing(t *testing.T) {
	ring, err := topology.New(topology.Ring1D, 2, 0, 0)
	require.NoError(t, err)
	require.Equal(t, topology.Neighbors{1, 1, topology.None, topology.None}, ring.Neighbors(0))
	require.Equal(t, topology.Neighbors{0, 0, topology.None, topology.None}, ring.Neighbors(1))

	torus := make2D(t, topology.Torus2D, 2, 2)
	require.Equal(t, topology.Neighbors{1, 1, 2, 2}, torus.Neighbors(0))
	require.Equal(t, topology.Neighbors{2, 2, 1, 1}, torus.Neighbors(3))

	mesh := make2D(t, topology.Mesh2DNoWrap, 2, 1)
	require.Equal(t, topology.Neighbors{1, topology.None, topology.None, topology.None}, mesh.Neighbors(0))
	require.Equal(t, topology.Neighbors{topology.None, 0, topology.None, topology.None}, mesh.Neighbors(1))
}

// A group of one is 1 by 1 and has no neighbours.
func TestOneRankHasNoNeighbor(t *testing.T) {
	for _, kind := range topology.Kinds() {
		top, err := topology.New(kind, 1, 0, 0)
		require.NoError(t, err)
		require.Equal(t, [2]int{1, 1}, [2]int{top.W(), top.H()})
		for _, d := range directions {
			peer, ok := top.Neighbor(0, d)
			require.False(t, ok)
			require.Equal(t, topology.None, peer)
		}
	}
}

// The picture of the package documentation: 0 1 2 above 3 4 5.
func TestTheGridOfTheDocumentation(t *testing.T) {
	const none = topology.None
	mesh := make2D(t, topology.Mesh2DNoWrap, 3, 2)
	require.Equal(t, topology.Neighbors{1, none, none, 3}, mesh.Neighbors(0))
	require.Equal(t, topology.Neighbors{5, 3, 1, none}, mesh.Neighbors(4))
	torus := make2D(t, topology.Torus2D, 3, 2)
	require.Equal(t, topology.Neighbors{1, 2, 3, 3}, torus.Neighbors(0))
	require.Equal(t, topology.Neighbors{3, 4, 2, 2}, torus.Neighbors(5))
}

func TestDirections(t *testing.T) {
	names := []string{"East", "West", "North", "South"}
	for i, d := range directions {
		require.Equal(t, names[i], d.String())
		here, there := offset[d], offset[opposite(d)]
		require.Equal(t, [2]int{}, [2]int{here[0] + there[0], here[1] + there[1]}, "%v", d)
	}
	require.Equal(t, "Direction(4)", topology.Direction(4).String())
}

// Extents are explicit, or else the square root; nothing is rounded.
func TestExtents(t *testing.T) {
	for _, kind := range []topology.Kind{topology.Torus2D, topology.Mesh2DNoWrap} {
		for _, c := range []struct{ count, w, h, wantW, wantH int }{
			{6, 3, 2, 3, 2},
			{6, 2, 3, 2, 3},
			{6, 6, 1, 6, 1},
			{4, 0, 0, 2, 2},
			{4, 4, 1, 4, 1},
			{1, 0, 0, 1, 1},
			{1, 1, 1, 1, 1},
			{topology.MaxCount, 0, 0, 1 << 10, 1 << 10},
		} {
			top, err := topology.New(kind, c.count, c.w, c.h)
			require.NoError(t, err)
			require.Equal(t, kind, top.Kind())
			require.Equal(t, []int{c.count, c.wantW, c.wantH}, []int{top.Count(), top.W(), top.H()})
		}
	}
}

// The square fallback takes the squares and nothing else.
func TestSquareFallback(t *testing.T) {
	squares := map[int]int{}
	for side := 1; side <= 64; side++ {
		squares[side*side] = side
	}
	for count := 1; count <= 64*64; count++ {
		top, err := topology.New(topology.Mesh2DNoWrap, count, 0, 0)
		if side, ok := squares[count]; ok {
			require.NoError(t, err)
			require.Equal(t, [2]int{side, side}, [2]int{top.W(), top.H()})
		} else {
			require.ErrorContains(t, err, fmt.Sprintf("count %d is not a square", count))
		}
	}
}

// Extents that do not fit are rejected, with count, w and h, the reason, and what
// to do.
func TestExtentsErrors(t *testing.T) {
	const ring, torus, mesh = topology.Ring1D, topology.Torus2D, topology.Mesh2DNoWrap
	for _, c := range []struct {
		kind        topology.Kind
		count, w, h int
		reason, do  string
	}{
		{torus, 6, 0, 0, "count 6 is not a square", "w*h = 6, for example w=3 h=2"},
		{mesh, 7, 0, 0, "count 7 is not a square", "w*h = 7, for example w=7 h=1"},
		{mesh, 12, 0, 0, "count 12 is not a square", "w*h = 12, for example w=4 h=3"},
		{torus, 6, 2, 2, "w*h is not count", "w*h = 6, for example w=3 h=2"},
		{torus, 6, 4, 2, "w*h is not count", "give both"},
		{torus, 6, 4, 1, "w*h is not count", "give both"},
		{mesh, 4, 2, 3, "w*h is not count", "for example w=2 h=2"},
		{torus, 6, 3, 0, "w is given without h", "give both"},
		{torus, 6, 0, 2, "h is given without w", "give both"},
		{mesh, 4, 2, 0, "w is given without h", "give both"},
		{torus, 6, -3, -2, "must not be negative", "give both"},
		{torus, 6, -3, 0, "must not be negative", "give both"},
		{torus, 6, 3, -2, "must not be negative", "give both"},
		{mesh, 4, math.MinInt, math.MinInt, "must not be negative", "give both"},
		{mesh, 4, math.MaxInt, math.MaxInt, "w*h is not count", "give both"},
		{mesh, 4, math.MaxInt, 4, "w*h is not count", "give both"},
		{mesh, 4, 4, math.MaxInt, "w*h is not count", "give both"},
		{torus, 4, 1<<(strconv.IntSize-2) + 1, 4, "w*h is not count", "give both"}, // the product wraps to 4
		{ring, 6, 6, 1, "a ring has no extents", "remove w and h"},
		{ring, 6, 6, 0, "a ring has no extents", "remove w and h"},
		{ring, 6, 0, 1, "a ring has no extents", "remove w and h"},
		{ring, 6, -1, 0, "a ring has no extents", "remove w and h"},
		{ring, 0, 0, 0, "count must be from 1", "1048576"},
		{ring, -1, 0, 0, "count must be from 1", "1048576"},
		{torus, 0, 0, 0, "count must be from 1", "1048576"},
		{mesh, 0, 3, 2, "count must be from 1", "1048576"},
		{mesh, math.MinInt, 0, 0, "count must be from 1", "1048576"},
		{ring, topology.MaxCount + 1, 0, 0, "count must be from 1", "1048576"},
		{torus, math.MaxInt, math.MaxInt, 1, "count must be from 1", "1048576"},
	} {
		top, err := topology.New(c.kind, c.count, c.w, c.h)
		require.Nil(t, top)
		var extents *topology.ExtentsError
		require.ErrorAs(t, err, &extents)
		require.Equal(t, topology.ExtentsError{Kind: c.kind, Count: c.count, W: c.w, H: c.h}, *extents)
		given := fmt.Sprintf("%v with count=%d w=%d h=%d:", c.kind, c.count, c.w, c.h)
		if c.w == 0 && c.h == 0 {
			given = fmt.Sprintf("%v with count=%d:", c.kind, c.count)
		}
		require.ErrorContains(t, err, given)
		require.ErrorContains(t, err, c.reason, given)
		require.ErrorContains(t, err, c.do, given)
	}
}

func TestNewRefusesUnknownKinds(t *testing.T) {
	top, err := topology.New(topology.Kind(3), 4, 2, 2)
	require.Nil(t, top)
	var unknown *topology.KindError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, "Kind(3)", unknown.Name)
}

// Equal is equality of kind and extents, which the text shows as well.
func TestEqual(t *testing.T) {
	var all []*topology.Topology
	each(t, func(t *testing.T, top *topology.Topology) {
		if top.Count() <= 12 {
			all = append(all, top)
		}
	})
	for i, a := range all {
		for j, b := range all {
			require.Equal(t, i == j, a.Equal(b), "%v, %v", a, b)
			require.Equal(t, i == j, a.String() == b.String(), "%v, %v", a, b)
		}
	}
	square, err := topology.New(topology.Torus2D, 4, 0, 0)
	require.NoError(t, err)
	require.True(t, square.Equal(make2D(t, topology.Torus2D, 2, 2)))
}

func TestString(t *testing.T) {
	require.Equal(t, "torus_2d 3x2 (6 ranks)", make2D(t, topology.Torus2D, 3, 2).String())
	require.Equal(t, "mesh_2d_no_wrap 1x1 (1 rank)", make2D(t, topology.Mesh2DNoWrap, 1, 1).String())
	ring, err := topology.New(topology.Ring1D, 6, 0, 0)
	require.NoError(t, err)
	require.Equal(t, "ring_1d (6 ranks)", ring.String())
}

func TestBrokenPreconditionsPanic(t *testing.T) {
	top := make2D(t, topology.Torus2D, 3, 2)
	for _, rank := range []int{-1, 6, math.MinInt, math.MaxInt} {
		text := fmt.Sprintf("topology: no rank %d in torus_2d 3x2 (6 ranks)", rank)
		require.PanicsWithValue(t, text, func() { top.Neighbors(rank) })
		require.PanicsWithValue(t, text, func() { top.Neighbor(rank, topology.East) })
		require.PanicsWithValue(t, text, func() { top.Coord(rank) })
	}
	for _, at := range [][2]int{{-1, 0}, {3, 0}, {0, -1}, {0, 2}} {
		text := fmt.Sprintf("topology: no position (%d, %d) in torus_2d 3x2 (6 ranks)", at[0], at[1])
		require.PanicsWithValue(t, text, func() { top.Rank(at[0], at[1]) })
	}
	require.Panics(t, func() { top.Neighbor(0, topology.Direction(4)) })
}

// The table of neighbours is computed once; Neighbors does not allocate.
func TestLookupsDoNotAllocate(t *testing.T) {
	top := make2D(t, topology.Torus2D, 8, 8)
	sum := 0
	allocs := testing.AllocsPerRun(100, func() {
		for rank := range top.Count() {
			for _, peer := range top.Neighbors(rank) {
				sum += peer
			}
			x, y := top.Coord(rank)
			sum += top.Rank(x, y) + topology.NewRing(top.Count(), rank).Block(-1)
		}
	})
	require.Zero(t, allocs)
	require.NotZero(t, sum)
}

func FuzzNew(f *testing.F) {
	f.Add(uint8(topology.Ring1D), 6, 0, 0)
	f.Add(uint8(topology.Torus2D), 6, 3, 2)
	f.Add(uint8(topology.Mesh2DNoWrap), 4, 0, 0)
	f.Add(uint8(topology.Torus2D), 6, 0, 0)
	f.Add(uint8(topology.Torus2D), -6, -3, 2)
	f.Add(uint8(topology.Mesh2DNoWrap), math.MaxInt, math.MaxInt, math.MaxInt)
	f.Add(uint8(255), 1, 1, 1)
	f.Fuzz(func(t *testing.T, kind uint8, count, w, h int) {
		top, err := topology.New(topology.Kind(kind), count, w, h)
		if err != nil {
			var unknown *topology.KindError
			var extents *topology.ExtentsError
			require.Nil(t, top)
			require.True(t, errors.As(err, &unknown) || errors.As(err, &extents), "%T", err)
			require.NotEmpty(t, err.Error())
			return
		}
		require.Equal(t, topology.Kind(kind), top.Kind())
		require.Equal(t, count, top.Count())
		require.Equal(t, count, top.W()*top.H())
		if w != 0 || h != 0 {
			require.Equal(t, [2]int{w, h}, [2]int{top.W(), top.H()}, "explicit extents are kept")
		}
		for _, rank := range []int{0, count / 2, count - 1} {
			x, y := top.Coord(rank)
			require.Equal(t, rank, top.Rank(x, y))
			for d, peer := range top.Neighbors(rank) {
				if peer != topology.None {
					require.Equal(t, rank, top.Neighbors(peer)[opposite(topology.Direction(d))])
				}
			}
		}
	})
}
