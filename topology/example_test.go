package topology_test

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/topology"
)

func ExampleNew() {
	// Four ranks are a square; six are not, and say so.
	square, err := topology.New(topology.Torus2D, 4, 0, 0)
	fmt.Println(square, err)

	_, err = topology.New(topology.Torus2D, 6, 0, 0)
	fmt.Println(err)

	wide, err := topology.New(topology.Torus2D, 6, 3, 2)
	fmt.Println(wide, err)

	// Output:
	// torus_2d 2x2 (4 ranks) <nil>
	// topology: torus_2d with count=6: count 6 is not a square, and w and h are not given; give both, with w*h = 6, for example w=3 h=2
	// torus_2d 3x2 (6 ranks) <nil>
}

func ExampleParseKind() {
	_, err := topology.ParseKind("mesh_2d")
	fmt.Println(err)

	var unknown *topology.KindError
	fmt.Println(errors.As(err, &unknown))

	// Output:
	// topology: unknown kind "mesh_2d" (did you mean mesh_2d_no_wrap?); use one of ring_1d, torus_2d, mesh_2d_no_wrap
	// true
}

func ExampleTopology_Neighbor() {
	//	0 1 2
	//	3 4 5
	mesh, err := topology.New(topology.Mesh2DNoWrap, 6, 3, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for d := topology.East; d <= topology.South; d++ {
		if peer, ok := mesh.Neighbor(4, d); ok {
			fmt.Println(d, peer)
		} else {
			fmt.Println(d, "is the edge")
		}
	}

	// Output:
	// East 5
	// West 3
	// North 1
	// South is the edge
}

// The schedule of the ring all-reduce, as rank 0 of 4 sees it.
func ExampleNewRing() {
	r := topology.NewRing(4, 0)
	for s := range r.Size - 1 {
		fmt.Printf("reduce-scatter: send block %d to rank %d, reduce block %d from rank %d\n",
			r.Block(-s), r.Next, r.Block(-s-1), r.Prev)
	}
	for s := range r.Size - 1 {
		fmt.Printf("all-gather: send block %d to rank %d, store block %d from rank %d\n",
			r.Block(1-s), r.Next, r.Block(-s), r.Prev)
	}

	// Output:
	// reduce-scatter: send block 0 to rank 1, reduce block 3 from rank 3
	// reduce-scatter: send block 3 to rank 1, reduce block 2 from rank 3
	// reduce-scatter: send block 2 to rank 1, reduce block 1 from rank 3
	// all-gather: send block 1 to rank 1, store block 0 from rank 3
	// all-gather: send block 0 to rank 1, store block 3 from rank 3
	// all-gather: send block 3 to rank 1, store block 2 from rank 3
}

// Two trees of seven ranks.
func ExampleTree() {
	show := func(t topology.Tree) {
		fmt.Println("height", t.Height())
		for rank := range 7 {
			fmt.Print(rank, ":")
			for i := range t.Degree(rank) {
				fmt.Print(" ", t.Child(rank, i))
			}
			fmt.Println()
		}
	}
	fmt.Print("binary, ")
	show(topology.NewKaryTree(7, 0, 2))
	fmt.Print("binomial, ")
	show(topology.NewBinomialTree(7, 0))

	// Output:
	// binary, height 2
	// 0: 1 2
	// 1: 3 4
	// 2: 5 6
	// 3:
	// 4:
	// 5:
	// 6:
	// binomial, height 2
	// 0: 1 2 4
	// 1:
	// 2: 3
	// 3:
	// 4: 5 6
	// 5:
	// 6:
}
