package measure

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/topology"
)

// ShapeOf returns the shape of a call in which all ranks have inputs, and results, of
// equal length. If a scattered input is not divisible, its blocks differ by
// one element, as in the variants with counts.
func ShapeOf(coll ccl.Collective, dtype ccl.DType, op ccl.Op, bytes int, t *topology.Topology) ccl.Shape {
	return ccl.Shape{
		Collective: coll, Ranks: t.Count(), Bytes: bytes, Total: total(coll, bytes, t.Count(), dtype.Size()),
		DType: dtype, Op: op, Topology: t,
	}
}

// total returns the length in bytes of the longest result on one rank. size is the length of an
// element in bytes.
func total(coll ccl.Collective, bytes, ranks, size int) int {
	switch {
	case coll.Traits().Input == ccl.RankBlock:
		return bytes * ranks
	case coll.Traits().Output == ccl.RankBlock:
		return (bytes/size + ranks - 1) / ranks * size
	}
	return bytes
}
