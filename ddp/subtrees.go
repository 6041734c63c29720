package ddp

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/reduce"
)

// shardTree is the binary tree whose leaves are the logical shards, from the first to the last. Of
// n leaves the left subtree has the largest power of two below n. A rank hosts consecutive leaves,
// and brings the sums of the maximal subtrees that these make up.
type shardTree struct {
	shards    int
	low, high int     // those that this rank hosts
	merges    []int   // by shard from low on: how many sums before it are added to it
	sums      [][]int // by rank: the number of shards of each sum
	isFlat    bool    // each rank brings one sum, and a pairwise all-reduce is the rest of the tree
}

func newShardTree(shards, rank, ranks int) *shardTree {
	t := &shardTree{shards: shards}
	var all []int
	for r := range ranks {
		low, high := ccl.BlockRange(shards, r, ranks)
		sums, merges := subtrees(low, high, shards)
		if r == rank {
			t.low, t.high, t.merges = low, high, merges
		}
		t.sums, all = append(t.sums, sums), append(all, sums...)
	}
	t.isFlat = len(all) == ranks && hasPairwiseOrder(all)
	return t
}

// subtrees returns the sizes of the maximal subtrees of the shards from low to before high, and how
// many of the subtrees before each shard end with it.
func subtrees(low, high, shards int) (sizes, merges []int) {
	for shard := low; shard < high; shard++ {
		first, end, n := shard, shard+1, 0
		for len(sizes) > 0 {
			size := sizes[len(sizes)-1]
			if (first-size)%(2*size) != 0 || end != min(first+size, shards) {
				break // it is not the left half of a subtree that ends here
			}
			first, n, sizes = first-size, n+1, sizes[:len(sizes)-1]
		}
		sizes, merges = append(sizes, end-first), append(merges, n)
	}
	return sizes, merges
}

// hasPairwiseOrder reports whether sums of so many shards are added up in the order in which ranks
// are that bring one input each.
func hasPairwiseOrder(sums []int) bool {
	if len(sums) == 1 {
		return true
	}
	split := reduce.SplitFold(len(sums), sums)
	return split == reduce.SplitFold(len(sums), nil) && hasPairwiseOrder(sums[:split]) && hasPairwiseOrder(sums[split:])
}
