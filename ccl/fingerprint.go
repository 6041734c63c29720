package ccl

import (
	"hash/fnv"
	"math/bits"

	"github.com/goccl/goccl/transport"
)

// fingerprint is what all ranks of a call must agree on. Its encoding has five words:
//
//	0  collective (8 bits), dtype (8), op (32, from bit 32)
//	1  count: elements of the vector, or of all blocks
//	2  root
//	3  the algorithm's entry
//	4  a hash of the lengths of blocks, if they differ
type fingerprint struct {
	coll   Collective
	dtype  DType
	op     uint32 // its fingerprintID
	count  int
	root   int
	entry  uint64
	counts uint64
}

func (f *fingerprint) encode() transport.Fingerprint {
	return transport.Fingerprint{
		uint64(f.coll) | uint64(f.dtype)<<8 | uint64(f.op)<<32,
		uint64(f.count), uint64(f.root), f.entry, f.counts,
	}
}

func fingerprintOf(p transport.Fingerprint) fingerprint {
	return fingerprint{
		coll: Collective(p[0]), dtype: DType(p[0] >> 8), op: uint32(p[0] >> 32),
		count: int(p[1]), root: int(p[2]), entry: p[3], counts: p[4],
	}
}

// entryID stands for an algorithm's entry in fingerprints: the FNV-1a hash of its name,
// which is the same in all processes.
func entryID(entry string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(entry))
	return h.Sum64()
}

// hash reduces a fingerprint to one word: the products of pairs of words, each word scrambled by
// a constant of its own, so that the processor multiplies in parallel.
func hash(p transport.Fingerprint) uint64 {
	return multiply(p[0]^0x9e3779b97f4a7c15, p[1]^0xbf58476d1ce4e5b9) ^
		multiply(p[2]^0x94d049bb133111eb, p[3]^0xd6e8feb86659fd93) ^
		multiply(p[4]^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
}

// multiply returns the xor of the two halves of a product.
func multiply(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// mix is a bijection of 64 bits (the finalizer of MurmurHash3, A. Appleby).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return h
}

// hashCounts returns a hash of the lengths of blocks.
func hashCounts(counts []int) uint64 {
	h := uint64(len(counts))
	for _, n := range counts {
		h = mix(h ^ uint64(n))
	}
	return h
}
